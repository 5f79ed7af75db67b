// thimble list: what can be named.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "data/dataset.h"
#include "graph/op.h"
#include "plan/packer.h"
#include "plan/policy.h"
#include "transform/codec.h"

namespace thimble {
namespace {

constexpr std::array<const char*, 7> kKinds = {"models", "data", "planners", "packers",
                                               "codecs", "ops",  "flags"};

constexpr size_t kColumn = 32;  // of summaries

nlohmann::json everything() {
  nlohmann::json all;
  const auto add = [&](const char* kind, std::string_view name, std::string_view summary) {
    all[kind].push_back({{"name", name}, {"summary", summary}});
  };
  for (const ModelFamily* f : all_model_families()) add("models", f->pattern, f->summary);
  for (const DatasetDef* d : all_datasets()) add("data", d->name, d->summary);
  for (const Policy* p : all_policies()) add("planners", p->name, p->summary);
  for (const Packer* p : all_packers()) add("packers", p->name, p->summary);
  for (const Codec codec : codecs_by_error()) add("codecs", codec->name, codec->summary);
  for (const OpDef* op : all_ops()) add("ops", op->name, op->summary);
  for (const ListedField& listed : listed_fields()) {
    if (listed.field.about().flag) add("flags", "--" + listed.field.name(), listed.help);
  }
  return all;
}

// The tables of flags in docs/cli.md: of every command, or of `train` alone.
void print_flag_table(bool training) {
  print("| flag | default | |\n|---|---|---|\n");
  for (const ListedField& listed : listed_fields()) {
    const Field& field = listed.field;
    const About& about = field.about();
    if (!about.flag || about.training != training) continue;
    std::string flag = "--" + field.name();
    if (field.kind() != Field::Kind::toggle) flag += " " + about.placeholder;
    if (const size_t bar = flag.find('|'); bar != std::string::npos) flag.insert(bar, "\\");
    std::string text = about.more.empty() ? listed.help : about.more;
    if (!listed.models.empty() && !about.more.empty()) {
      text = fmt::format("{}: {}", fmt::join(listed.models, ", "), about.more);
    }
    print("| `{}` | {} | {} |\n", flag, listed.usual, text);
  }
}

int run(const std::string& wanted, bool json, bool markdown) {
  if (markdown) {
    user_check(wanted == "flags", "--markdown is for `thimble list flags`");
    for (const bool training : {false, true}) {
      print_flag_table(training);
      if (!training) print("\n");
    }
    return kOk;
  }
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
    print("{}{}\n", gap, kind);
    gap = "\n";
    for (const auto& entry : all[kind]) {
      const std::string name = entry["name"].get<std::string>();
      // A long name has its summary below it.
      print("  {}{:<{}}{}\n", name, name.size() < kColumn ? "" : "\n  ",
            name.size() < kColumn ? kColumn - name.size() : kColumn,
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
    bool markdown = false;
  };
  auto flags = std::make_shared<Flags>();
  add_value(*command, "kind", flags->kind, "",
            "Only these: models, data, planners, packers, codecs, ops or flags")
      ->check(CLI::IsMember(std::vector<std::string>(kKinds.begin(), kKinds.end())));
  add_json_flag(*command, flags->json);
  command->add_flag("--markdown", flags->markdown, "flags: as the tables of the reference");
  return {command, [flags] { return run(flags->kind, flags->json, flags->markdown); }};
}

}  // namespace thimble
