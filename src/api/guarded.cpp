#include "api/guarded.h"

namespace thimble::api {
namespace {

struct Last {
  std::string sentence;
  bool lost = false;  // there was no memory for it
  Bytes needed;
};
thread_local Last last;

}  // namespace

void remember(std::string_view sentence) noexcept {
  try {
    last.sentence = sentence;
    last.lost = false;
  } catch (...) {
    last.lost = true;
  }
}

void remember_needed(Bytes needed) noexcept { last.needed = needed; }

}  // namespace thimble::api

using namespace thimble::api;

const char* thimble_last_error() {
  return last.lost ? "not enough memory to say what went wrong" : last.sentence.c_str();
}
int64_t thimble_last_needed() { return last.needed.count; }
void thimble_set_error(const char* sentence) { remember(sentence == nullptr ? "" : sentence); }
