//===- LinePlot.cpp - Lines as a picture ----------------------------------===//

#include "tools/LinePlot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

using namespace replayjit::internal;

namespace {
constexpr double width = 720, height = 300;
constexpr double left = 60, right = 160, top = 36, bottom = 48;
constexpr const char *colours[] = {"#1b6ca8", "#c8553d", "#2e8b57",
                                   "#8a5fb4", "#b8860b", "#555555"};

/// What the axes span, and where a point lies in the picture.
struct Frame {
  double lowX = 0, highX = 1, highY = 1;

  double x(double value) const {
    return left + (value - lowX) / (highX - lowX) * (width - left - right);
  }
  double y(double value) const {
    return height - bottom - value / highY * (height - top - bottom);
  }
};
} // namespace

LinePlot::Line &LinePlot::line(const std::string &name) {
  for (Line &line : lines)
    if (line.name == name)
      return line;
  return lines.emplace_back(Line{name, {}});
}

/// The next of 1, 2, 5, 10, .. times a power of ten.
static double roundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (double factor : {1.0, 2.0, 5.0})
    if (step <= factor * power)
      return factor * power;
  return 10 * power;
}

std::string LinePlot::svg() const {
  Frame frame;
  std::map<double, std::string> ticks;
  double most = 0;
  for (const Line &line : lines)
    for (const Point &point : line.points) {
      ticks[point.x] = point.label;
      most = std::max(most, point.y);
    }
  if (!ticks.empty()) {
    frame.lowX = ticks.begin()->first;
    frame.highX = std::max(ticks.rbegin()->first, frame.lowX + 1);
  }
  const double step = roundStep(most > 0 ? most / 5 : 0.2);
  frame.highY = std::max(step, std::ceil(most / step) * step);

  std::string text = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"{2}\">\n<text x=\"{3}\" y=\"16\" "
      "style=\"font-weight:bold\">{2}</text>\n<text x=\"{3}\" y=\"30\">{4}"
      "</text>\n",
      width, height, title, left, yTitle);
  for (int i = 0; i * step <= frame.highY * 1.001; ++i) {
    const double y = frame.y(i * step);
    text += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" "
                        "stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1f}\" "
                        "text-anchor=\"end\">{:.3g}</text>\n",
                        left, y, width - right, y, left - 8, y + 4, i * step);
  }
  for (const auto &[x, label] : ticks)
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}"
                        "</text>\n",
                        frame.x(x), height - bottom + 18, label);
  text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}"
                      "</text>\n",
                      (left + width - right) / 2, height - 8, xTitle);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char *colour = colours[i % std::size(colours)];
    std::string points, marks;
    for (const Point &point : lines[i].points) {
      const double x = frame.x(point.x), y = frame.y(point.y);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" "
                           "fill=\"{}\"><title>{}, {}: {:.4g}</title></circle>",
                           x, y, colour, lines[i].name, point.label, point.y);
    }
    const double y = top + 16 + 18 * double(i);
    text += fmt::format(
        "<polyline fill=\"none\" stroke=\"{0}\" stroke-width=\"2\" "
        "points=\"{1}\"/>{2}\n<rect x=\"{3}\" y=\"{4}\" width=\"12\" "
        "height=\"4\" fill=\"{0}\"/><text x=\"{5}\" y=\"{6}\">{7}</text>\n",
        colour, points, marks, width - right + 12, y - 6, width - right + 30, y,
        lines[i].name);
  }
  return text + "</svg>\n";
}
