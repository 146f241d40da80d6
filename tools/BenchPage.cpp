//===- BenchPage.cpp - A measurement as a table and as a page -------------===//

#include "tools/DecodeBench.h"
#include "tools/LinePlot.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace replayjit::internal;
using Json = nlohmann::ordered_json;

namespace {

/// One kernel at one batch.
struct Figure {
  int batch = 0;
  std::string family, launches;
  double us = 0, least = 0, most = 0, bytes = 0, streamUs = 0;
  bool coldL2 = true;
  double overPacked = 0; ///< Packed's time over this one's; 0: not known.

  /// Of the fastest stream that moves the same bytes.
  double share() const { return streamUs / us; }
  std::string name() const { return family + ", " + launches; }
};

} // namespace

static std::vector<Figure> figuresOf(const Json &document) {
  std::vector<Figure> figures;
  for (const Json &entry : document.at("batches"))
    for (const Json &kernel : entry.at("kernels")) {
      const Json &us = kernel.at("us");
      figures.push_back({entry.at("batch"), kernel.at("family"),
                         kernel.at("launches"), us.at("median"), us.at("least"),
                         us.at("most"), kernel.at("bytes"),
                         kernel.at("streamUs"), kernel.at("coldL2")});
    }
  for (Figure &figure : figures)
    for (const Figure &other : figures)
      if (other.family == "packed" && other.batch == figure.batch &&
          other.launches == figure.launches)
        figure.overPacked = other.us / figure.us;
  return figures;
}

/// Says which number of a document is none that can be shown.
static Status checkNumbers(const Json &document) {
  auto check = [](double number, const std::string &what) {
    return number > 0 && std::isfinite(number)
               ? Status::ok()
               : Status::invalid(fmt::format(
                     "{} is {}; it must be finite and above 0", what, number));
  };
  for (const Figure &figure : figuresOf(document))
    for (auto [member, number] :
         {std::pair("batch", double(figure.batch)), std::pair("us", figure.us),
          std::pair("streamUs", figure.streamUs)})
      if (Status status =
              check(number, fmt::format("{} of {} at batch {}", member,
                                        figure.name(), figure.batch));
          !status)
        return status;
  for (const Json &entry : document.at("batches"))
    if (entry.contains("phases"))
      for (const double number : entry.at("phases"))
        if (Status status = check(number, "a number of phases"); !status)
          return status;
  for (const char *member : {"device", "target"})
    (void)document.at(member).get<std::string>();
  for (const char *member : {"read", "copy"})
    (void)document.at("ceilings").at(member).get<double>();
  (void)document.at("spec").at("ringDepth").get<int>();
  return Status::ok();
}

Status replayjit::internal::checkDocument(const Json &document,
                                          const std::string &name) {
  Status status = Status::ok();
  try {
    status = checkNumbers(document);
  } catch (const Json::exception &problem) {
    std::string_view lack = problem.what(); // "[where in the library] lack"
    lack.remove_prefix(lack.find(']') + 2);
    status = Status::invalid(std::string(lack));
  }
  return std::move(status).within(
      fmt::format("'{}' is not what replay-bench decode --json writes", name));
}

/// The time of the same batch, family and launches in another document; 0 if it
/// has none.
static double timeIn(const Json &earlier, const Figure &figure) {
  if (!earlier.is_object())
    return 0;
  for (const Figure &old : figuresOf(earlier))
    if (old.batch == figure.batch && old.name() == figure.name())
      return old.us;
  return 0;
}

static bool isSlower(const Figure &figure, double earlier) {
  return earlier > 0 && figure.us > earlier * (1 + regression);
}

std::vector<std::string> replayjit::internal::regressions(const Json &document,
                                                          const Json &earlier) {
  std::vector<std::string> lines;
  for (const Figure &figure : figuresOf(document))
    if (const double old = timeIn(earlier, figure); isSlower(figure, old))
      lines.push_back(fmt::format("B={} {}: {:.2f} us, earlier {:.2f}",
                                  figure.batch, figure.name(), figure.us, old));
  return lines;
}

/// What was measured: heads, sizes and types.
static std::string title(const Json &document) {
  const Json &spec = document.at("spec");
  auto word = [&](const char *name) { return spec.value(name, ""); };
  auto number = [&](const char *name) { return spec.value(name, 0); };
  return fmt::format("{} {}/{} heads of {} x {}, L={}, {} state, {} ring",
                     spec.value("isKda", false) ? "KDA" : "GDN",
                     number("numKeyHeads"), number("numValueHeads"),
                     number("headDimV"), number("headDimK"),
                     number("ringDepth"), word("stateType"), word("ringType"));
}

static std::string machine(const Json &document) {
  const Json &ceilings = document.at("ceilings");
  return fmt::format("{}, {}: reads {:.2f} TB/s, copies {:.2f} TB/s",
                     document.at("device").get<std::string>(),
                     document.at("target").get<std::string>(),
                     ceilings.at("read").get<double>() / 1e6,
                     ceilings.at("copy").get<double>() / 1e6);
}

static std::string ratio(double value) {
  return value > 0 ? fmt::format("{:.2f}x", value) : "-";
}

std::string replayjit::internal::benchTable(const Json &document) {
  constexpr const char *row =
      "{:>6}  {:<8} {:<13} {:>9} {:>17} {:>6} {:>11} {:>12}\n";
  std::string text = machine(document) + "\n" + title(document) + "\n";
  text += fmt::format(row, "batch", "family", "launches", "us", "least - most",
                      "TB/s", "of stream", "over packed");
  for (const Figure &figure : figuresOf(document))
    text += fmt::format(
        row, figure.batch, figure.family, figure.launches,
        fmt::format("{:.2f}{}", figure.us, figure.coldL2 ? "" : "*"),
        fmt::format("{:.2f} - {:.2f}", figure.least, figure.most),
        fmt::format("{:.2f}", figure.bytes / figure.us / 1e6),
        fmt::format("{:.2f}", figure.share()), ratio(figure.overPacked));
  return text;
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

static std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text)
    result += c == '&'   ? "&amp;"
              : c == '<' ? "&lt;"
              : c == '>' ? "&gt;"
                         : std::string(1, c);
  return result;
}

/// A line for each family and launches, over the logarithm of the batch.
template <typename Of>
static std::string overBatches(std::string title, std::string unit,
                               const std::vector<Figure> &figures, Of of) {
  LinePlot plot;
  plot.title = std::move(title);
  plot.xTitle = "requests at once";
  plot.yTitle = std::move(unit);
  for (const Figure &figure : figures) {
    const double y = of(figure);
    if (y > 0)
      plot.line(figure.name())
          .points.push_back(
              {std::log2(figure.batch), std::to_string(figure.batch), y});
  }
  return plot.svg();
}

static std::string ringPhases(const Json &document) {
  LinePlot plot;
  plot.title = "Latency where all rows stand at one ring row";
  plot.xTitle = "ring rows in use; at the last one all flush";
  plot.yTitle = "us, over that of an empty ring";
  for (const Json &entry : document.at("batches")) {
    if (!entry.contains("phases") || entry.at("phases").empty())
      continue;
    const auto times = entry.at("phases").get<std::vector<double>>();
    LinePlot::Line &line =
        plot.line(fmt::format("B={}", entry.at("batch").get<int>()));
    for (size_t m = 0; m < times.size(); ++m)
      line.points.push_back(
          {double(m), std::to_string(m), times[m] / times.front()});
  }
  return plot.lines.empty() ? "" : plot.svg();
}

static std::string htmlTable(const std::vector<Figure> &figures,
                             const Json &earlier) {
  std::string text =
      "<table><thead><tr><th>batch<th>family<th>launches<th>us<th>least - most"
      "<th>TB/s<th>of its stream<th>over packed<th>earlier, us<th>change"
      "</thead>\n";
  for (const Figure &figure : figures) {
    const double old = timeIn(earlier, figure);
    const bool slower = isSlower(figure, old);
    text += fmt::format(
        "<tr{}><td>{}<td>{}<td>{}<td>{:.2f}{}<td>{:.2f} - {:.2f}<td>{:.2f}"
        "<td>{:.2f}<td>{}<td>{}<td>{}\n",
        slower ? " class=\"slower\"" : "", figure.batch, escaped(figure.family),
        escaped(figure.launches), figure.us, figure.coldL2 ? "" : "*",
        figure.least, figure.most, figure.bytes / figure.us / 1e6,
        figure.share(), ratio(figure.overPacked),
        old > 0 ? fmt::format("{:.2f}", old) : "-",
        old > 0 ? fmt::format("{:+.1f} %{}", 100 * (figure.us / old - 1),
                              slower ? " slower" : "")
                : "-");
  }
  return text + "</table>\n";
}

static constexpr const char *style =
    "body{font:15px/1.4 sans-serif;margin:2em auto;max-width:64em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}"
    ".slower{background:#fdd}svg{max-width:100%;margin:.5em 0}"
    "svg text{font:12px sans-serif;fill:#222}";

std::string replayjit::internal::benchPage(const Json &document,
                                           const Json &earlier) {
  const std::vector<Figure> figures = figuresOf(document);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<link rel=\"icon\" href=\"data:,\">"
      "<title>replayjit decode</title><style>{}</style></head><body>\n"
      "<h1>Decode, {}</h1>\n<p>{}. Medians of {} replays of a graph of "
      "launches, "
      "each on slots of its own; * where states may be in the L2.</p>\n",
      style, escaped(title(document)), escaped(machine(document)),
      document.value("repeats", 0));
  if (earlier.is_object())
    page += fmt::format("<p>Beside an earlier measurement ({}); what is slower "
                        "by more than {:.0f} % is marked.</p>\n",
                        escaped(machine(earlier)), 100 * regression);
  page += htmlTable(figures, earlier);
  page += overBatches("Share of the ceiling",
                      "time of a stream of the same bytes over the kernel's",
                      figures, [](const Figure &figure) {
                        return figure.launches == "plain" ? figure.share() : 0;
                      });
  page +=
      overBatches("Speed over packed decode", "packed's time over replay's",
                  figures, [](const Figure &figure) {
                    return figure.family == "packed" ? 0 : figure.overPacked;
                  });
  page += ringPhases(document);
  return page + "</body></html>\n";
}
