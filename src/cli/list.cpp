// thimble list: what can be named.
#include <fmt/format.h>

#include <array>

#include "cli/options.h"
#include "data/open.h"
#include "graph/op.h"
#include "plan/packer.h"
#include "plan/policy.h"
#include "transform/codec.h"

namespace thimble {
namespace {

constexpr std::array<const char*, 6> kKinds = {"models",  "data",   "planners",
                                               "packers", "codecs", "ops"};

nlohmann::json everything() {
  nlohmann::json all;
  const auto add = [&](const char* kind, std::string_view name, std::string_view summary) {
    all[kind].push_back({{"name", name}, {"summary", summary}});
  };
  for (const ModelFamily* f : all_model_families()) add("models", f->pattern, f->summary);
  for (const DatasetKind& d : dataset_kinds()) add("data", d.name, d.summary);
  for (const Policy* p : all_policies()) add("planners", p->name, p->summary);
  for (const Packer* p : all_packers()) add("packers", p->name, p->summary);
  for (const Codec codec : codecs_by_error()) add("codecs", codec->name, codec->summary);
  for (const OpDef* op : all_ops()) add("ops", op->name, op->summary);
  return all;
}

int run(const std::string& wanted, bool json) {
  nlohmann::json all = everything();
  for (const char* kind : kKinds) {
    if (!wanted.empty() && wanted != kind) all.erase(kind);
  }
  if (json) {
    print_json(all);
    return kOk;
  }
  const char* gap = "";
  for (const char* kind : kKinds) {
    if (!all.contains(kind)) continue;
    fmt::print("{}{}\n", gap, kind);
    gap = "\n";
    for (const auto& entry : all[kind]) {
      fmt::print("  {:<32}{}\n", entry["name"].get<std::string>(),
                 entry["summary"].get<std::string>());
    }
  }
  return kOk;
}

}  // namespace

Command add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "What can be named: models, data sets, ops, ...");
  struct Flags {
    std::string kind;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("kind", flags->kind,
                   "Only these: models, data, planners, packers, codecs or ops")
      ->type_name("")
      ->check(CLI::IsMember(std::vector<std::string>(kKinds.begin(), kKinds.end())));
  command->add_flag("--json", flags->json, "One JSON object on stdout");
  return {command, [flags] { return run(flags->kind, flags->json); }};
}

}  // namespace thimble
