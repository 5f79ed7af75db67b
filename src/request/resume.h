// Whether and how a run resumes from its folder.
#pragma once

#include <optional>
#include <string>

#include "comm/world.h"
#include "request/request.h"
#include "runs/run_folder.h"

namespace thimble {

enum class Resume : uint8_t {
  never,
  latest,    // from the latest checkpoint
  or_start,  // likewise, if there is one
};

// Whether the run resumes from the folder. UserError where a new run would write over an
// old one that nobody allowed it to.
bool goes_on(Resume resume, bool overwrite, const std::string& out);

// The folder of a run, held by the first rank, and whether the run resumes from it.
struct RunPlace {
  std::optional<RunFolder> folder;  // none: another rank holds it
  std::string out;                  // the same on every rank, as is what follows
  bool resume = false;
};
// A new folder below runs/ where none was named.
RunPlace take_place(const RunSettings& run, const Recipe& recipe, World* world);

// A run that goes on from a checkpoint in `out` keeps its activations as it began: an automatic
// codec is not chosen anew. And it keeps what its budget chose: with another budget it recomputes
// more, or less, and has the same bits.
void resume_request(Request& request, const std::string& out);

// One that goes on by other ranks keeps its microbatches where these can share them: then its
// numbers stay the same to the bit. A note where they cannot.
std::optional<std::string> resume_microbatch(Request& request, const std::string& out);

}  // namespace thimble
