//===- Exceptions.cpp - Where exceptions become a Status ------------------===//

#include "base/Exceptions.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace replayjit::internal {

// So short that a std::string holds it in itself.
static Status outOfMemory() noexcept {
  return Status::error(StatusCode::OutOfMemory, "out of memory");
}

Status caughtStatus() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return outOfMemory();
  } catch (const std::length_error &) { // more than any memory has
    return outOfMemory();
  } catch (const std::exception &other) {
    try {
      return Status::error(
          StatusCode::Internal,
          fmt::format("an exception ended this call, which is a bug: {}",
                      other.what()));
    } catch (...) {
      return outOfMemory();
    }
  } catch (...) { // a callback's
    return Status::error(StatusCode::Internal, "exception");
  }
}

} // namespace replayjit::internal
