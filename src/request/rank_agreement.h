// The settings that ranks must have in common before they train together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/world.h"
#include "request/request.h"

namespace thimble {

struct RunIdentity {
  std::string program;    // version and build
  nlohmann::json recipe;  // all fields (recipe/settings.h)
  nlohmann::json data;    // fingerprint (data/fingerprint.h)
};

// UserError, the same on every rank, naming the first rank that has something else than rank 0, and
// what. Called by all ranks.
void check_run_identity(Communicator& ranks, const RunIdentity& own);

// The same of this program, of the request and of the data's fingerprint.
void check_run_identity(World& world, const Request& request, const nlohmann::json& fingerprint);

// The request as all ranks have it: of as many as were started, with as many threads on each.
// UserError where --ranks is not what was started; `world` null: a process alone.
Request read_request(const std::string& model, Settings overrides, World* world);

}  // namespace thimble
