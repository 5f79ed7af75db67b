// thimble average: the mean of a run's last checkpoints.
#include "weights/average.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "weights/checkpoint.h"

namespace thimble {

std::vector<std::string> last_weights(const std::string& run, int64_t count) {
  const std::vector<std::string> folders = kept_checkpoints(run);
  user_check(!folders.empty(), "there is no checkpoint in '{}'; name the --out of a run", run);
  user_check(
      std::ssize(folders) >= count,
      "'{}' has {} checkpoints, not the {} asked for; train with --keep-checkpoints {} and a "
      "--save-every that makes as many",
      run, folders.size(), count, count);
  std::vector<std::string> weights;
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(weights_of_checkpoint(folders[static_cast<size_t>(i)]));
  }
  return weights;
}

Command add_average(CLI::App& app) {
  struct Flags {
    std::string run, out;
    int64_t last = 10;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("average", "The mean of a run's last checkpoints");
  add_argument(*command, "run", flags->run, "Folder of the run (--out of `thimble train`)");
  add_whole(*command, "--last", flags->last, 1, 10'000, "How many checkpoints (10)");
  add_value(*command, "--out", flags->out, "FILE", "safetensors file to write")->required();
  return {command, [flags] {
            average_weights(last_weights(flags->run, flags->last), flags->out);
            print("{}: the mean of {} checkpoints\n", flags->out, flags->last);
            return kOk;
          }};
}

}  // namespace thimble
