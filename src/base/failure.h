// The meaning of an exception for the caller, at the border where it ends: the program's, or that
// of the C functions.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>

#include "base/error.h"

namespace thimble {

enum class FailureKind : uint8_t {
  mistake,  // of the call, or a machine that cannot go on
  memory,   // there is not enough
  bug,      // ours
};

// Calls say(std::string_view) with a sentence on the exception that is being handled. Allocates
// nothing where memory is what is missing. REQUIRES: called in a catch clause.
template <class Say>
FailureKind explain_failure(const Say& say) {
  try {
    throw;
  } catch (const UserError& error) {
    say(std::string_view(error.what()));
    return FailureKind::mistake;
  } catch (const std::bad_alloc&) {
    say("not enough memory for this command; try a smaller model or batch, or a machine with more "
        "memory");
    return FailureKind::memory;
  } catch (const std::length_error&) {  // of a container: more than any memory
    say("not enough memory for this command: its sizes are beyond any; try smaller ones");
    return FailureKind::memory;
  } catch (const std::filesystem::filesystem_error& error) {
    say(std::string_view(fmt::format("the file system refused: {}; check the path",
                                     printable_message(error.what()))));
    return FailureKind::mistake;
  } catch (const std::exception& error) {
    say(std::string_view(fmt::format("internal error: {}", printable_message(error.what()))));
    return FailureKind::bug;
  } catch (...) {
    say("internal error: an exception of an unknown kind");
    return FailureKind::bug;
  }
}

}  // namespace thimble
