// thimble list: what can be named.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/console.h"
#include "cli/help_text.h"
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

constexpr size_t kMargin = 2, kColumn = 32;  // of names, and from there of summaries

// The summary of a name in its column, wrapped to the terminal; that of a long name is below it.
std::string beside(const std::string& name, const std::string& summary) {
  const std::string margin = "\n" + std::string(kMargin + kColumn, ' ');
  std::string text = name.size() < kColumn ? std::string(kColumn - name.size(), ' ') : margin;
  for (const char c : wrapped(summary, kMargin + kColumn, help_width())) {
    text += c == '\n' ? margin : std::string(1, c);
  }
  return text;
}

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
  const std::vector<std::string> kinds(kKinds.begin(), kKinds.end());
  user_check(wanted.empty() || std::ranges::find(kinds, wanted) != kinds.end(),
             "there is no list of '{}'; known: {}{}", wanted, fmt::join(kinds, ", "),
             nearest_clause(wanted, kinds));
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
      print("  {}{}\n", name, beside(name, entry["summary"].get<std::string>()));
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
            "Only these: models, data, planners, packers, codecs, ops or flags");
  add_json_flag(*command, flags->json);
  command->add_flag("--markdown", flags->markdown, "flags: as the tables of the reference");
  return {command, [flags] { return run(flags->kind, flags->json, flags->markdown); }};
}

}  // namespace thimble
