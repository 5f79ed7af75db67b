// thimble report: a plan, or a run as far as it goes, as one HTML page and as pictures.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "survey/step_report.h"

namespace thimble {
namespace {

struct Flags {
  std::string what;
  std::string page;
  std::string pictures;
  std::string frontier = "on";
};

int run(const Flags& flags) {
  user_check(!flags.page.empty() || !flags.pictures.empty(),
             "say where the report goes: -o report.html, or --svg FOLDER for pictures alone");
  std::error_code ignored;
  std::optional<RunRecord> record;
  std::optional<PlanFile> plan;
  if (std::filesystem::is_directory(flags.what, ignored)) {
    record = read_run(flags.what);
  } else {
    plan = load_plan(flags.what);
  }
  const StepReport report = report_step({.plan = record ? record->plan : *plan,
                                         .run = record ? &*record : nullptr,
                                         .frontier = flags.frontier == "on"});
  for (const std::string& note : report.notes) say("thimble: note: {}\n", note);
  if (!flags.page.empty()) {
    write_file(flags.page, report.page);
    fmt::print("{} ({})\n", flags.page, to_string(Bytes(std::ssize(report.page))));
  }
  if (!flags.pictures.empty()) {
    ensure_directory(flags.pictures);
    for (const Picture& picture : report.pictures) {
      const std::string path = fmt::format("{}/{}.svg", flags.pictures, picture.name);
      write_file(path, picture.svg);
      fmt::print("{}\n", path);
    }
  }
  return kOk;
}

}  // namespace

Command add_report(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "A plan or a run as one self-contained HTML page");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("what", flags->what,
                   "The folder of a run, or a plan file written by `thimble plan --save`")
      ->type_name("")
      ->required();
  command->add_option("-o,--output", flags->page, "Write the page here")->type_name("FILE");
  command->add_option("--svg", flags->pictures, "Write the pictures as SVG, for papers")
      ->type_name("FOLDER");
  command
      ->add_option("--frontier", flags->frontier,
                   "on, or off: do not plan with every policy and many budgets")
      ->check(CLI::IsMember({"on", "off"}));
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
