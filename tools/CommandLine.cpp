//===- CommandLine.cpp - Flags, and sentences for wrong ones --------------===//

#include "tools/CommandLine.h"

#include "tools/Tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

using namespace replayjit::internal;

/// CLI11 says "Could not convert: --k = abc".
static std::string conversionSentence(const CLI::App &app, std::string text) {
  const std::string intro = "Could not convert: ";
  const size_t equals = text.find(" = ");
  if (!text.starts_with(intro) || equals == std::string::npos)
    return text;
  const std::string flag = text.substr(intro.size(), equals - intro.size());
  const CLI::Option *option = app.get_option_no_throw(flag);
  const std::string type = option ? option->get_type_name() : "";
  const char *allowed = "an integer of at most 32 bits";
  if (type == "UINT")
    allowed = "an integer, 0 or more";
  else if (type == "FLOAT")
    allowed = "a number";
  return fmt::format("{}: '{}' is not allowed; it must be {}", flag,
                     text.substr(equals + 3), allowed);
}

static std::string sentence(const CLI::App &app,
                            const CLI::ParseError &problem) {
  std::string text = problem.what();
  if (size_t line = text.find('\n'); line != std::string::npos)
    text.resize(line);
  if (problem.get_exit_code() == int(CLI::ExitCodes::ConversionError))
    return conversionSentence(app, text);
  if (problem.get_exit_code() == int(CLI::ExitCodes::ExtrasError))
    return text + "; --help lists the flags";
  return text;
}

std::optional<int> replayjit::internal::parse(CLI::App &app, int argc,
                                              char **argv) {
  try {
    app.parse(argc, argv);
    // CLI11 takes these as if the flag were not there.
    std::vector<const CLI::App *> parsed = {&app};
    for (const CLI::App *subcommand : app.get_subcommands())
      parsed.push_back(subcommand);
    for (const CLI::App *each : parsed)
      for (const CLI::Option *option : each->get_options())
        for (const std::string &value : option->results())
          if (value.empty())
            return fail(fmt::format("{}: an empty value is not allowed",
                                    option->get_name()),
                        exitUsage);
    return std::nullopt;
  } catch (const CLI::Success &help) {
    // Not by way of std::cout, which loses why it could not write.
    std::ostringstream text;
    const int status = app.exit(help, text, text);
    if (std::fputs(text.str().c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      return fail(fmt::format("output: cannot write to stdout: {}",
                              std::strerror(errno)));
    return status;
  } catch (const CLI::ParseError &problem) {
    return fail(sentence(app, problem), exitUsage);
  }
}

CLI::Validator replayjit::internal::oneOf(std::vector<std::string> allowed) {
  std::string help = fmt::format("{{{}}}", fmt::join(allowed, ","));
  return CLI::Validator(
      [allowed](std::string &value) {
        if (std::find(allowed.begin(), allowed.end(), value) != allowed.end())
          return std::string();
        return fmt::format("'{}' is not allowed; allowed are {}", value,
                           fmt::join(allowed, ", "));
      },
      help);
}

CLI::Validator replayjit::internal::within(int low, int high) {
  return CLI::Validator(
      [low, high](std::string &value) {
        int number = 0;
        if (CLI::detail::lexical_cast(value, number) && number >= low &&
            number <= high)
          return std::string();
        return fmt::format("'{}' is not allowed; it must be {} to {}", value,
                           low, high);
      },
      fmt::format("[{} to {}]", low, high));
}
