// thimble verify: replays a saved plan byte range by byte range.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "pipeline/check_plan_file.h"

namespace thimble {
namespace {

int verify_file(const std::string& path, bool json) {
  const PlanFile file = load_plan(path);
  const std::optional<std::string> fault = find_fault(file);
  if (json) {
    print_json({{"sound", !fault.has_value()},
                {"fault", fault.value_or("")},
                {"model", file.recipe.model.name},
                {"arena_bytes", file.plans.front().plan.arena.count}});
  }
  user_check(!fault.has_value(), "the plan in '{}' is unsound: {}", path, fault.value_or(""));
  if (!json) {
    print("{}: sound; {} calls of {} in {} bytes ({})\n", path,
          file.plans.front().plan.calls.size(), file.recipe.model.name,
          file.plans.front().plan.arena.count, to_string(file.plans.front().plan.arena));
  }
  return kOk;
}

}  // namespace

Command add_verify(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check a saved plan against its model, byte range by byte range");
  struct Flags {
    std::string path;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  add_argument(*command, "plan", flags->path, "Plan file written by `thimble plan --save`");
  add_json_flag(*command, flags->json);
  return {command, [flags] { return verify_file(flags->path, flags->json); }};
}

}  // namespace thimble
