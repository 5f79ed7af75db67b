#include "train/early_stopping.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/json_object.h"

namespace thimble {

EarlyStopping::EarlyStopping(std::string out, int64_t patience, bool resumed, bool adapters)
    : out_(std::move(out)), patience_(patience), adapters_(adapters) {
  const std::string path = out_ + "/best.json";
  if (!resumed || !exists(path)) return;
  const nlohmann::json json = read_json(path, "the best test of a run");
  const std::vector<std::string> keys = {"step", "test_loss", "tests_since", "last_test"};
  try {
    const JsonObject record(json, "it", keys);
    step_ = record.whole("step");
    loss_ = record.real("test_loss");
    since_ = record.whole("tests_since");
    last_ = record.whole("last_test");
  } catch (const UserError& error) {
    user_error("'{}' is damaged: {}; remove it to look for the best anew", path, error.what());
  }
  if (over()) since_ = 0;
}

bool EarlyStopping::is_best(const Progress& tested) {
  if (tested.step <= last_) return false;  // it was counted before a crash
  last_ = tested.step;
  const bool better = std::isfinite(tested.test.loss) && (step_ == 0 || tested.test.loss < loss_);
  since_ = better ? 0 : since_ + 1;
  if (better) {
    step_ = tested.step;
    loss_ = tested.test.loss;
  }
  return better;
}

void EarlyStopping::save() const {
  write_file(
      out_ + "/best.json",
      json_text(
          {{"step", step_}, {"test_loss", loss_}, {"tests_since", since_}, {"last_test", last_}}) +
          "\n");
}

}  // namespace thimble
