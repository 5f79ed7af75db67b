#include "select/max_batch.h"

#include <algorithm>
#include <map>

#include "base/attempt.h"
#include "select/selection_limits.h"

namespace thimble {
namespace {

std::string field_for(const Recipe& requested, const Settings& explicit_settings,
                      const std::string& what) {
  user_check(what == "batch" || what == "length" || what == "layers" || what == "width",
             "--largest is batch, length, layers or width, not '{}'", what);
  Recipe copy = requested;
  const std::vector<Field> fields = fields_of(copy);
  const bool hidden = what == "width" && find_field(fields, "width") == nullptr;
  std::string name = hidden ? "hidden" : what;
  user_check(find_field(fields, name) != nullptr,
             "{} has no --{} to make larger; choose --largest batch", requested.model.name, what);
  user_check(requested.tokens == 0 || what != "batch",
             "--tokens says how much a batch is; leave it out for --largest batch");
  user_check(
      what != "batch" || !explicit_settings.contains("microbatch"),
      "every batch fits that is computed --microbatch rows at a time; leave --microbatch out "
      "for --largest batch");
  return name;
}

class Search {
 public:
  Search(const Recipe& requested, const Settings& explicit_settings, std::string field,
         Bytes budget, std::shared_ptr<Machine> machine)
      : requested_(requested),
        explicit_settings_(explicit_settings),
        field_(std::move(field)),
        budget_(budget),
        machine_(std::move(machine)) {}

  // The recipe with that value.
  MaxBatch with(int64_t value) const {
    MaxBatch largest = {field_, value, requested_, explicit_settings_};
    Settings change = {{field_, value}};
    configure(largest.recipe, change);
    largest.explicit_settings[field_] = value;
    if (field_ == "batch") largest.explicit_settings["microbatch"] = value;  // all of it at once
    return largest;
  }

  // Some values are none of the model's (a width that its heads do not divide): those count as the next
  // below that is. 0: there is none near.
  int64_t valid(int64_t value) {
    for (int64_t v = value; v > std::max<int64_t>(0, value - kSelectionLimits.near_values); --v) {
      const auto made = if_allowed([&] {
        const Recipe recipe = with(v).recipe;
        check(recipe);
        return make_graph(recipe, largest_shape(recipe));
      });
      if (made) return v;
    }
    return 0;
  }

  bool fits(int64_t value) {
    const auto [at, fresh] = known_.try_emplace(value, false);
    if (fresh) {
      const MaxBatch tried = with(value);
      at->second =
          TechniqueSelector(tried.recipe, tried.explicit_settings, machine_).has_room(budget_);
    }
    return at->second;
  }
  // Whether some value that was tried did not fit.
  bool met_the_budget() const {
    return std::ranges::any_of(known_, [](const auto& entry) { return !entry.second; });
  }

 private:
  const Recipe& requested_;
  const Settings& explicit_settings_;
  const std::string field_;
  const Bytes budget_;
  const std::shared_ptr<Machine> machine_;
  std::map<int64_t, bool> known_;
};

}  // namespace

MaxBatch find_max_batch(const Recipe& requested, const Settings& explicit_settings,
                        const std::string& what, Bytes budget,
                        const std::shared_ptr<Machine>& machine) {
  const std::string field = field_for(requested, explicit_settings, what);
  Search search(requested, explicit_settings, field, budget, machine);
  // The smallest that there is: from 1 up, by doubling.
  int64_t low = 0;
  for (int64_t value = 1; low == 0 && value <= kSelectionLimits.largest; value *= 2)
    low = search.valid(value);
  user_check(low > 0 && search.fits(low),
             "{} has no room even for --{} {}; give more --memory, or allow more (--allow "
             "approximate)",
             to_string(budget), field, low);
  int64_t high = low;
  while (high <= kSelectionLimits.largest) {
    const int64_t next = search.valid(high * 2);
    if (next <= low || !search.fits(next)) {
      high = high * 2;
      break;
    }
    low = high = next;
  }
  while (high - low > 1) {
    const int64_t middle = search.valid(low + (high - low) / 2);
    if (middle <= low) {  // nothing between is the model's, up to there
      const int64_t above = search.valid(high - 1);
      if (above <= low) break;
      if (search.fits(above)) {
        low = above;
        break;
      }
      high = above;
      continue;
    }
    if (search.fits(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  MaxBatch largest = search.with(low);
  largest.by_memory = search.met_the_budget();
  return largest;
}

}  // namespace thimble
