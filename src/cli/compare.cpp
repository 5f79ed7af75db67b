// thimble compare: runs beside each other, as a table and as a page.
#include <fmt/format.h>

#include "base/io/file.h"
#include "cli/console.h"
#include "cli/options.h"
#include "survey/run_comparison.h"

namespace thimble {
namespace {

struct CompareFlags {
  std::vector<std::string> runs;
  std::string page;
  bool json = false;
};

int run(const CompareFlags& flags) {
  std::vector<RunRecord> records;
  for (const std::string& folder : flags.runs) records.push_back(read_run(folder));
  const RunComparison comparison = compare_runs(records);
  if (!flags.page.empty()) write_file(flags.page, comparison_page(comparison));
  if (flags.json) {
    print_json(comparison_json(comparison));
  } else {
    print("{}", comparison_text(comparison));
  }
  return kOk;
}

}  // namespace

Command add_compare(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare", "Runs beside each other: results, memory, time, and what their recipes differ in");
  auto flags = std::make_shared<CompareFlags>();
  add_argument(*command, "runs", flags->runs, "Folders of runs");
  add_value(*command, "-o,--output", flags->page, "FILE", "Write a page with their curves, too");
  add_json_flag(*command, flags->json);
  return {command, [flags] { return run(*flags); }};
}

}  // namespace thimble
