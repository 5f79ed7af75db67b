// thimble list: what can be named.
#include <fmt/format.h>

#include "backend/backend.h"
#include "cli/options.h"
#include "data/open.h"
#include "graph/op.h"
#include "plan/packer.h"
#include "plan/policy.h"

namespace thimble {

Command add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "Models, data sets, planners, packers and ops");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "One JSON object on stdout");
  return {command, [json] {
    nlohmann::json all;
    const auto add = [&](const char* kind, std::string_view name, std::string_view summary) {
      all[kind].push_back({{"name", name}, {"summary", summary}});
    };
    for (const ModelFamily* f : all_model_families()) add("models", f->pattern, f->summary);
    for (const std::string_view name : dataset_names()) add("data", name, "");
    for (const Policy* p : all_policies()) add("planners", p->name, p->summary);
    for (const Packer* p : all_packers()) add("packers", p->name, p->summary);
    for (const OpDef* op : all_ops()) add("ops", op->name, op->summary);
    if (*json) {
      print_json(all);
      return kOk;
    }
    for (const auto* kind : {"models", "data", "planners", "packers", "ops"}) {
      fmt::print("{}\n", kind);
      for (const auto& entry : all[kind]) {
        fmt::print("  {:<28}{}\n", entry["name"].get<std::string>(),
                   entry["summary"].get<std::string>());
      }
    }
    return kOk;
  }};
}

}  // namespace thimble
