//===- LinePlot.h - Lines as a picture --------------------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_LINEPLOT_H
#define REPLAYJIT_TOOLS_LINEPLOT_H

#include <deque>
#include <string>
#include <vector>

namespace replayjit::internal {

/// Lines over one axis, as SVG to stand in an HTML page. Titles and names are
/// plain text without '<' and '&'.
struct LinePlot {
  struct Point {
    double x;
    std::string label; ///< What the axis says at x.
    double y;          ///< Finite, 0 or more.
  };
  struct Line {
    std::string name;
    std::vector<Point> points;
  };

  std::string title, xTitle, yTitle;
  std::deque<Line> lines;

  /// The line of this name, which is added if there is none.
  Line &line(const std::string &name);
  std::string svg() const;
};

} // namespace replayjit::internal

#endif
