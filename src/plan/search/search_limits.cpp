#include "plan/search/search_limits.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>

#include "base/error.h"

namespace thimble {
namespace {

// Visits each limit by name; efforts by place: "eviction.0.beam".
template <class Limits, class Visit>
void for_each_limit(Limits& l, const Visit& visit) {
  visit("policies", l.policies);
  visit("always_kept", l.always_kept);
  visit("chain", l.chain);
  visit("between", l.between);
  visit("halvings", l.halvings);
  visit("evictions", l.evictions);
  visit("evictions_by_work", l.evictions_by_work);
  visit("evictions_by_bytes", l.evictions_by_bytes);
  visit("slack", l.slack);
  visit("slack_left", l.slack_left);
  visit("reduce_peak", l.reduce_peak);
  visit("pool_nodes", l.pool_nodes);
  visit("least_anchors", l.least_anchors);
  visit("anchors", l.anchors);
  visit("least_between", l.least_between);
  visit("most_between", l.most_between);
  visit("least_halvings", l.least_halvings);
  visit("most_halvings", l.most_halvings);
  visit("clearly_slower", l.clearly_slower);
  visit("large_nodes", l.large_nodes);
  visit("chain_rooms", l.chain_rooms);
  visit("chain_rooms_tried", l.chain_rooms_tried);
  visit("chain_prices", l.chain_prices);
  visit("chain_mixtures", l.chain_mixtures);
  for (size_t i = 0; i < l.chain_shrinks.size(); ++i) {
    visit("chain_shrinks." + std::to_string(i), l.chain_shrinks[i]);
  }
  visit("chain_buckets", l.chain_buckets);
  visit("long_chain_buckets", l.long_chain_buckets);
  visit("long_chain", l.long_chain);
  visit("majors", l.majors);
  visit("minor_share", l.minor_share);
  visit("eviction_nodes", l.eviction_nodes);
  visit("lumpy_share", l.lumpy_share);
  for (size_t i = 0; i < l.eviction_efforts.size(); ++i) {
    auto& effort = l.eviction_efforts[i];
    const std::string of = "eviction." + std::to_string(i) + ".";
    visit(of + "values", effort.values);
    visit(of + "first_budgets", effort.first_budgets);
    visit(of + "budgets", effort.budgets);
    visit(of + "beam", effort.beam);
    visit(of + "widest", effort.widest);
    visit(of + "covers", effort.covers);
    visit(of + "exact_prices", effort.exact_prices);
    visit(of + "work", effort.work);
  }
  visit("narrow_gap", l.narrow_gap);
  visit("bisections", l.bisections);
  visit("repairs", l.repairs);
  visit("work_per_flop", l.work_per_flop);
  visit("work_per_byte", l.work_per_byte);
  visit("dear", l.dear);
  visit("little", l.little);
  visit("plentiful_price", l.plentiful_price);
  visit("slack_rounds", l.slack_rounds);
  visit("slack_long", l.slack_long);
  visit("floor_rooms", l.floor_rooms);
  visit("floor_points", l.floor_points);
  visit("floor_budgets", l.floor_budgets);
  visit("floor_bisections", l.floor_bisections);
  visit("floor_nodes", l.floor_nodes);
  visit("floor_work", l.floor_work);
  visit("floor_beam", l.floor_beam);
  visit("floor_widest", l.floor_widest);
  visit("floor_covers", l.floor_covers);
  visit("peak_starts", l.peak_starts);
  visit("peak_slowest", l.peak_slowest);
  visit("peak_worth", l.peak_worth);
  visit("peak_tries", l.peak_tries);
  visit("peak_work", l.peak_work);
  visit("peak_part", l.peak_part);
  visit("peak_followed", l.peak_followed);
  visit("peak_depth", l.peak_depth);
  visit("peak_moves", l.peak_moves);
  visit("all_combinations", l.all_combinations);
  visit("shortlist_budgets", l.shortlist_budgets);
  visit("shortlist_tried", l.shortlist_tried);
  visit("floor_shortlist_tried", l.floor_shortlist_tried);
  visit("smallest_combinations", l.smallest_combinations);
  visit("working_calls", l.working_calls);
  visit("built_nodes", l.built_nodes);
  visit("between_nodes", l.between_nodes);
  visit("planned_nodes", l.planned_nodes);
  visit("small_nodes", l.small_nodes);
  visit("planners", l.planners);
  visit("encoded_nodes", l.encoded_nodes);
  visit("least_encodings", l.least_encodings);
  visit("most_encodings", l.most_encodings);
}

double number_of(std::string_view value) {
  if (value == "on") return 1;
  if (value == "off") return 0;
  double number = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
  user_check(fault == std::errc() && end == value.data() + value.size() && std::isfinite(number),
             "a limit is on, off or a number, not '{}'", value);
  return number;
}

}  // namespace

void scale_searches(SearchLimits& limits, double part) {
  const auto scale = [&](int64_t& limit) {
    limit = static_cast<int64_t>(static_cast<double>(limit) * part);
  };
  scale(limits.pool_nodes);
  for (EvictionEffort& effort : limits.eviction_efforts) scale(effort.work);
}

SearchLimits limits_within(double seconds) {
  SearchLimits limits;
  const double part = seconds / kUsualSearchSeconds;
  const auto scale = [&](auto& limit) {
    limit =
        static_cast<std::remove_reference_t<decltype(limit)>>(static_cast<double>(limit) * part);
  };
  scale_searches(limits, part);
  scale(limits.floor_nodes);
  scale(limits.floor_work);
  scale(limits.peak_tries);
  scale(limits.peak_work);
  scale(limits.built_nodes);
  scale(limits.between_nodes);
  scale(limits.planned_nodes);
  scale(limits.small_nodes);
  scale(limits.encoded_nodes);
  return limits;
}

std::vector<NamedLimit> named_limits(const SearchLimits& limits) {
  std::vector<NamedLimit> all;
  for_each_limit(limits, [&](std::string name, const auto& value) {
    all.push_back({std::move(name), static_cast<double>(value)});
  });
  return all;
}

void set_limit(SearchLimits& limits, std::string_view text) {
  const size_t sign = text.find('=');
  user_check(sign != std::string_view::npos, "a limit is spelt NAME=VALUE, not '{}'", text);
  const std::string_view wanted = text.substr(0, sign);
  const double value = number_of(text.substr(sign + 1));
  bool found = false;
  for_each_limit(limits, [&](const std::string& name, auto& limit) {
    if (name != wanted) return;
    limit = static_cast<std::remove_reference_t<decltype(limit)>>(value);
    found = true;
  });
  user_check(found, "there is no limit '{}'", wanted);
}

}  // namespace thimble
