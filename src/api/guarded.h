// The border of the C functions: no exception passes, each becomes a code and a sentence.
#pragma once

#include <string>

#include "backend/backend.h"
#include "base/failure.h"
#include "pipeline/pipeline.h"
#include "thimble/thimble.h"

namespace thimble::api {

// A callback of the caller's has failed.
struct CallbackFailed {
  std::string sentence;  // its own
};
// A run was asked to stop, and has.
struct Stopped {
  std::string sentence;
};
// No plan fits the budget.
struct NoFit {
  std::string sentence;
  Bytes needed;
};

// Sets thimble_last_error() and thimble_last_needed() of this thread.
void remember(std::string_view sentence) noexcept;
void remember_needed(Bytes needed) noexcept;

// UserError for a handle or a text that is not there.
template <class T>
T& given(T* pointer, const char* what) {
  user_check(pointer != nullptr, "{} is NULL, and something has to be there", what);
  return *pointer;
}

// Calls a callback that says why it fails. `name` stands in where it does not.
template <class Callback, class... Args>
void call(const char* name, Callback callback, Args... args) {
  remember("");
  if (callback(args...) == 0) return;
  const std::string said = thimble_last_error();
  throw CallbackFailed{
      said.empty() ? fmt::format("the callback '{}' failed, and did not say why", name) : said};
}

template <class Body>
thimble_code guarded(const Body& body) noexcept {
  try {
    body();
    return THIMBLE_OK;
  } catch (const CallbackFailed& failed) {
    remember(failed.sentence);
    return THIMBLE_CALLBACK;
  } catch (const Stopped& stopped) {
    remember(stopped.sentence);
    return THIMBLE_STOPPED;
  } catch (const NoFit& no_fit) {
    remember(no_fit.sentence);
    remember_needed(no_fit.needed);
    return THIMBLE_NO_FIT;
  } catch (const DeviceError& error) {
    remember(error.what());
    return THIMBLE_DEVICE;
  } catch (...) {
    try {
      switch (explain_failure(remember)) {
        case FailureKind::mistake:
          return THIMBLE_MISTAKE;
        case FailureKind::memory:
          return THIMBLE_MEMORY;
        case FailureKind::bug:
          return THIMBLE_BUG;
      }
    } catch (...) {  // no memory for the sentence
    }
    return THIMBLE_MEMORY;
  }
}

}  // namespace thimble::api
