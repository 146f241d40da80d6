//===- Progress.h - What is going on, on stderr -----------------*- C++ -*-===//
#ifndef REPLAYJIT_TOOLS_PROGRESS_H
#define REPLAYJIT_TOOLS_PROGRESS_H

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

namespace replayjit::internal {

/// Shows progress of what takes longer than two seconds: a bar on a terminal,
/// else a plain line every five seconds. A thread of its own draws, so the time
/// moves also while one unit of work is long. Its methods are for one thread.
class Progress {
public:
  explicit Progress(double total) : total(total), ticker([this] { tick(); }) {}
  ~Progress() {
    {
      std::lock_guard lock(mutex);
      stopped = true;
      erase();
    }
    wake.notify_one();
    ticker.join();
  }

  /// `done` of the total, and what is being done.
  void update(double nowDone, std::string nowDoing) {
    std::lock_guard lock(mutex);
    done = nowDone;
    doing = std::move(nowDoing);
  }

  /// Prints a line of the result to stdout without disturbing the bar.
  void print(const std::string &line) {
    std::lock_guard lock(mutex);
    erase();
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  }

private:
  using Clock = std::chrono::steady_clock;

  void tick() {
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex);
    auto next = Clock::now() + 2s;
    while (!wake.wait_until(lock, next, [this] { return stopped; })) {
      draw();
      next = Clock::now() + (isTerminal ? 200ms : 5000ms);
    }
  }

  void draw() {
    double share = total > 0 ? std::min(1.0, done / total) : 0;
    double spent = std::chrono::duration<double>(Clock::now() - start).count();
    std::string text = fmt::format("{:3.0f} %  {:.0f} s", 100 * share, spent);
    if (share > 0.02)
      text += fmt::format(", {:.0f} s left", spent * (1 - share) / share);
    if (!doing.empty())
      text += "  " + doing;
    if (!isTerminal) {
      fmt::print(stderr, "{}\n", text);
      return;
    }
    int filled = int(share * 20);
    text =
        fmt::format("[{:#<{}}{:.<{}}] {}", "", filled, "", 20 - filled, text);
    fmt::print(stderr, "\r{:.100}\x1b[K", text);
    std::fflush(stderr);
    drawn = true;
  }

  void erase() {
    if (drawn)
      std::fputs("\r\x1b[K", stderr);
    drawn = false;
  }

  const double total;
  const bool isTerminal = isatty(STDERR_FILENO);
  const Clock::time_point start = Clock::now();
  std::mutex mutex; ///< Of all below.
  std::condition_variable wake;
  double done = 0;
  std::string doing;
  bool drawn = false, stopped = false;
  std::thread ticker; ///< Last: it uses all the others.
};

} // namespace replayjit::internal

#endif
