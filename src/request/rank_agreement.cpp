#include "request/rank_agreement.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/build_id.h"
#include "base/error.h"
#include "base/host/cores.h"
#include "base/io/file_digest.h"
#include "base/io/json.h"
#include "comm/small_collectives.h"
#include "data/fingerprint.h"

namespace thimble {
namespace {

// Fields that may differ from machine to machine.
constexpr std::array<const char*, 2> kOfOneMachine = {"data_dir", "costs"};

// The machine and the cores of it that this rank may use.
std::string cores_of_rank() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  std::string text = name.data();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  for (size_t c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &cores)) text += fmt::format(" {}", c);
  }
  return text;
}

// Threads of each rank: the cores that it may use, divided among the ranks that may use the same. As many
// on every rank, since kernels round by them.
int threads_of_rank(World& world) {
  const std::string own = cores_of_rank();
  const auto sharing = std::ranges::count(gathered(world.ranks(), own), own);
  const double threads = std::max(1, usable_cores() / static_cast<int>(sharing));
  return static_cast<int>(std::ranges::min(gathered(world.ranks(), threads)));
}

// "batch = 32, there 64".
std::string first_difference(const std::string& own, const std::string& of_first) {
  const nlohmann::json here = nlohmann::json::parse(own), there = nlohmann::json::parse(of_first);
  for (const auto& [key, value] : there.items()) {
    if (here.contains(key) && here[key] == value) continue;
    return fmt::format("{} = {}, there {}", key,
                       here.contains(key) ? json_text(here[key]) : "(nothing)", json_text(value));
  }
  return "its fields are others";
}

}  // namespace

void check_run_identity(Communicator& ranks, const RunIdentity& own) {
  const std::vector<std::string> programs = gathered(ranks, own.program);
  if (const size_t k = first_other_rank(programs); k > 0) {
    user_error("rank {} runs {}, and rank 0 runs {}; start the same program everywhere", k,
               programs[k], programs[0]);
  }
  nlohmann::json recipe = own.recipe;
  for (const char* key : kOfOneMachine) recipe.erase(key);
  const std::vector<std::string> recipes = gathered(ranks, json_text(recipe));
  if (const size_t k = first_other_rank(recipes); k > 0) {
    user_error(
        "rank {} was started with another recipe than rank 0: {}; start all ranks with the same "
        "command",
        k, first_difference(recipes[k], recipes[0]));
  }
  const std::vector<std::string> data = gathered(ranks, json_text(own.data));
  if (const size_t k = first_other_rank(data); k > 0) {
    user_error("rank {} reads other data than rank 0: {}; give all ranks the same files", k,
               difference_of_data(nlohmann::json::parse(data[0]), nlohmann::json::parse(data[k])));
  }
}

void check_run_identity(World& world, const Request& request, const nlohmann::json& fingerprint) {
  const std::string digest = file_sha256("/proc/self/exe").substr(0, 12);
  check_run_identity(world.ranks(), {fmt::format("{} of {}", digest, build_id()),
                                     to_json(request.recipe), fingerprint});
}

Request read_request(const std::string& model, Settings overrides, World* world) {
  if (world != nullptr) {
    const auto ranks = overrides.find("ranks");
    user_check(ranks == overrides.end() || ranks->second == fmt::format("{}", world->size()),
               "--ranks {} is not what was started: {} ranks; leave --ranks out",
               ranks == overrides.end() ? "" : read_text(ranks->second, "--ranks"), world->size());
    overrides["ranks"] = fmt::format("{}", world->size());
  }
  Request request = read_request(model, overrides);
  const char* const named = std::getenv("OMP_NUM_THREADS");
  if (world != nullptr && request.recipe.on.threads == 0 && (named == nullptr || *named == '\0')) {
    request.recipe.on.threads = threads_of_rank(*world);
  }
  return request;
}

}  // namespace thimble
