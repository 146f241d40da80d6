//===- Lesson.h - What the lessons share ------------------------*- C++ -*-===//
#ifndef REPLAYJIT_TESTS_TUTORIAL_LESSON_H
#define REPLAYJIT_TESTS_TUTORIAL_LESSON_H

#include <replayjit/replayjit.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// A lesson ends at the first error; an engine would look at the code.
inline void orStop(const replayjit::Status &status) {
  if (status)
    return;
  std::fprintf(stderr, "error: %s\n%s", status.message.c_str(),
               status.log.c_str());
  std::exit(1);
}
template <typename T> T orStop(replayjit::Result<T> result) {
  orStop(result.status());
  return std::move(*result);
}
inline void expect(bool holds, const char *what) {
  if (!holds)
    orStop({REPLAYJIT_EXECUTION_FAULT, std::string("not so: ") + what});
}

/// Device memory with a copy of `values`, freed with the device.
template <typename T>
uint64_t upload(replayjit::Device &device, const char *name,
                const std::vector<T> &values) {
  const size_t bytes = values.size() * sizeof(T);
  const uint64_t address = orStop(device.allocate(bytes, name));
  orStop(device.copyToDevice(address, values.data(), bytes));
  return address;
}
template <typename T>
std::vector<T> download(replayjit::Device &device, uint64_t address,
                        size_t count) {
  std::vector<T> values(count);
  orStop(device.copyFromDevice(values.data(), address, count * sizeof(T)));
  return values;
}

/// Numbers between -1 and 1, the same in each run.
class Numbers {
public:
  std::vector<float> draw(size_t count) {
    std::vector<float> values(count);
    for (float &value : values) {
      state = state * 1664525u + 1013904223u;
      value = float(int32_t(state)) / 2147483648.0f;
    }
    return values;
  }

private:
  uint32_t state = 7;
};

#endif
