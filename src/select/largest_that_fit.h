// The largest batch and length that fit a budget, found quickly: by one schedule a value, of the
// leanest technique combination that the recipe's tier allows. Every value up to those has a plan;
// a longer search (select/max_batch.h) may find one for a little more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "recipe/settings.h"
#include "select/technique_selector.h"

namespace thimble {

struct LargestThatFits {
  int64_t value = 0;  // 0: not even 1 fits
  // Whether memory is the limit; false: the model takes no larger value.
  bool by_memory = true;
};

class LargestThatFit {
 public:
  // REQUIRES: the recipe was checked and has a budget in bytes; the machine was opened for it.
  LargestThatFit(const Recipe& requested, const Settings& explicit_settings,
                 std::shared_ptr<Machine> machine, const SearchLimits& limits = {});

  // `field` is batch or length; a batch is computed at once. `fits`: a value that is known to. None:
  // the model has no such field, or its batches are counted otherwise.
  std::optional<LargestThatFits> find(const std::string& field, int64_t fits = 0);

 private:
  // The live peak of a step with that value. None: the model does not take it.
  std::optional<Bytes> peak(const std::string& field, int64_t value);
  // Whether its arena fits, too. REQUIRES: the peak does.
  bool is_laid_out(const std::string& field, int64_t value);
  Recipe recipe_with(const std::string& field, int64_t value) const;
  std::string leanest_policy(const Step& step) const;

  Recipe requested_;
  const Bytes budget_;
  const std::shared_ptr<Machine> machine_;
  const SearchLimits limits_;
  Settings changes_;  // of the leanest combination
  std::string policy_;
  std::map<std::pair<std::string, int64_t>, std::optional<Bytes>> known_;
};

}  // namespace thimble
