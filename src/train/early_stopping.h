// The best test of a run so far, and whether the run is to end since no later one was better.
#pragma once

#include <cstdint>
#include <string>

#include "train/trainer.h"

namespace thimble {

// Kept in OUT/best.json, so that a run that is resumed knows it, beside OUT/best.safetensors, or of a
// run that trains adapters alone, OUT/best-adapter.
class EarlyStopping {
 public:
  // `patience`: tests without a better loss before the run ends; 0: it never does. A resumed run goes
  // on from what the folder has of the steps before; one that had ended so has as many tests again.
  EarlyStopping(std::string out, int64_t patience, bool resumed, bool adapters = false);

  // After a test. True: it is the best so far, and its weights are to be kept at weights(). A loss that
  // is no number never is. Of several ranks all ask, and hear the same.
  bool is_best(const Progress& tested);
  // Writes what is known, behind the weights. Of several ranks the first calls it.
  void save() const;

  bool over() const { return patience_ > 0 && since_ >= patience_; }
  // A file, or a folder of adapters.
  std::string weights() const { return out_ + (adapters_ ? "/best-adapter" : "/best.safetensors"); }
  int64_t step() const { return step_; }  // of the best test; 0: there was none
  double loss() const { return loss_; }   // likewise

 private:
  std::string out_;
  int64_t patience_, step_ = 0, since_ = 0;
  int64_t last_ = 0;  // step of the last test
  double loss_ = 0;
  bool adapters_;
};

}  // namespace thimble
