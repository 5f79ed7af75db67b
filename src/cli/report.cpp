// thimble report: a plan, or a run as far as it goes, as one HTML page and as pictures.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "pipeline/check_plan_file.h"
#include "survey/report_files.h"

namespace thimble {
namespace {

struct ReportFlags {
  std::string what;
  std::string page;
  std::string pictures;
  std::string frontier = "auto";
};

// Planning with every policy and many budgets takes minutes for the largest nets.
bool draws_frontier(const ReportFlags& flags, const PlanFile& plan) {
  constexpr size_t kManyCalls = 4000;
  const size_t calls = plan.plans.front().plan.calls.size();
  if (flags.frontier != "auto") return flags.frontier == "on";
  if (calls > kManyCalls) {
    say("thimble: note: no frontier of a step of {} calls: --frontier on takes a while\n", calls);
  }
  return calls <= kManyCalls;
}

int run(const ReportFlags& flags) {
  user_check(!flags.page.empty() || !flags.pictures.empty(),
             "say where the report goes: -o report.html, or --svg FOLDER for pictures alone");
  std::error_code ignored;
  std::optional<RunRecord> record;
  if (std::filesystem::is_directory(flags.what, ignored)) record = read_run(flags.what);
  const PlanFile plan = record ? record->plan : load_plan(flags.what);
  check_on_any_device(plan, flags.what);
  const ReportFiles report = make_report(
      {.plan = plan, .run = record ? &*record : nullptr, .frontier = draws_frontier(flags, plan)});
  for (const std::string& note : report.notes) say("thimble: note: {}\n", note);
  if (!flags.page.empty()) {
    write_file(flags.page, report.page);
    print("{} ({})\n", flags.page, to_string(Bytes(std::ssize(report.page))));
  }
  if (!flags.pictures.empty()) {
    ensure_directory(flags.pictures);
    for (const DrawnPicture& picture : report.pictures) {
      const std::string path = fmt::format("{}/{}.svg", flags.pictures, picture.name);
      write_file(path, picture.svg);
      print("{}\n", path);
    }
  }
  return kOk;
}

}  // namespace

Command add_report(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "A plan or a run as one self-contained HTML page");
  auto flags = std::make_shared<ReportFlags>();
  add_argument(*command, "what", flags->what,
               "The folder of a run, or a plan file written by `thimble plan --save`");
  add_value(*command, "-o,--output", flags->page, "FILE", "Write the page here");
  add_value(*command, "--svg", flags->pictures, "FOLDER", "Write the pictures as SVG, for papers");
  command
      ->add_option("--frontier", flags->frontier,
                   "on, off, or auto: plan with every policy and many budgets, but not for the "
                   "largest nets")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
