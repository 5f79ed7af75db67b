#include "report/page_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "plan/bytes/allocation_timeline.h"

namespace thimble {
namespace {

std::string base64(const void* data, size_t size) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (size_t i = 0; i < size; i += 3) {
    const size_t count = std::min<size_t>(3, size - i);
    unsigned word = static_cast<unsigned>(bytes[i]) << 16;
    if (count > 1) word |= static_cast<unsigned>(bytes[i + 1]) << 8;
    if (count > 2) word |= bytes[i + 2];
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[(word >> (18 - 6 * k)) & 63] : '=';
    }
  }
  return text;
}

template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, uint8_t>) return "u8";
  if constexpr (std::is_same_v<T, uint32_t>) return "u32";
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
}

// Text that repeats, once each.
class Words {
 public:
  uint32_t number(std::string_view word) {
    const auto [it, fresh] = numbers_.try_emplace(std::string(word), words_.size());
    if (fresh) words_.emplace_back(word);
    return static_cast<uint32_t>(it->second);
  }
  const std::vector<std::string>& all() const { return words_; }

 private:
  std::map<std::string, size_t, std::less<>> numbers_;
  std::vector<std::string> words_;
};

// Addresses and sizes are multiples of the alignment, and fit 32 bits up to 256 GiB.
uint32_t in_units(Bytes bytes) {
  const int64_t units = bytes.count / kArenaAlignment;
  internal_check(bytes.count % kArenaAlignment == 0 && units <= UINT32_MAX, "no place in an arena");
  return static_cast<uint32_t>(units);
}

nlohmann::json allocations_json(const std::vector<Allocation>& allocations) {
  std::vector<uint32_t> at, size, first, last, occupant_allocation, occupant_value, occupant_made;
  std::vector<uint8_t> role;
  for (const Allocation& allocation : allocations) {
    for (const Occupant& occupant : allocation.occupants) {
      occupant_allocation.push_back(static_cast<uint32_t>(at.size()));
      occupant_value.push_back(
          static_cast<uint32_t>(occupant.value.index));  // of scratch: the most
      occupant_made.push_back(static_cast<uint32_t>(occupant.made));
    }
    at.push_back(in_units(allocation.at));
    size.push_back(in_units(allocation.size));
    first.push_back(static_cast<uint32_t>(allocation.first));
    last.push_back(static_cast<uint32_t>(allocation.last));
    role.push_back(static_cast<uint8_t>(allocation.role));
  }
  return {{"at", packed_array(at)},
          {"size", packed_array(size)},
          {"first", packed_array(first)},
          {"last", packed_array(last)},
          {"role", packed_array(role)},
          {"tenants",
           {{"stay", packed_array(occupant_allocation)},
            {"value", packed_array(occupant_value)},
            {"made", packed_array(occupant_made)}}}};
}

nlohmann::json values_json(const ReportData& data) {
  Words types, fates, reasons;
  std::vector<uint32_t> type, reason;
  std::vector<double> bytes;
  std::vector<uint8_t> fate;
  std::vector<std::string_view> names;
  for (size_t v = 0; v < data.graph.values.size(); ++v) {
    const Value& value = data.graph.values[v];
    names.push_back(value.name);
    type.push_back(types.number(to_string(value.type)));
    bytes.push_back(static_cast<double>(value.type.bytes().count));
    fate.push_back(static_cast<uint8_t>(fates.number(data.why[v].fate)));
    reason.push_back(reasons.number(data.why[v].reason));
  }
  return {{"names", names},
          {"types", types.all()},
          {"type", packed_array(type)},
          {"bytes", packed_array(bytes)},
          {"fates", fates.all()},
          {"fate", packed_array(fate)},
          {"reasons", reasons.all()},
          {"reason", packed_array(reason)}};
}

std::vector<float> in_milliseconds(const std::vector<double>& seconds) {
  std::vector<float> all;
  for (const double s : seconds) all.push_back(static_cast<float>(1e3 * s));
  return all;
}

nlohmann::json calls_json(const ReportData& data) {
  enum Flag : uint8_t { kAgain = 1, kBackward = 2, kBegin = 4, kEnd = 8 };
  std::vector<uint32_t> nodes;
  std::vector<uint8_t> flags;
  for (const PlannedCall& call : data.plan.calls) {
    const Node& node = data.graph[call.node];
    unsigned flag = 0;
    if (call.recompute) flag |= kAgain;
    if (node.backward) flag |= kBackward;
    if (node.phase == Phase::prologue) flag |= kBegin;
    if (node.phase == Phase::epilogue) flag |= kEnd;
    nodes.push_back(static_cast<uint32_t>(call.node.at()));
    flags.push_back(static_cast<uint8_t>(flag));
  }
  nlohmann::json json = {{"node", packed_array(nodes)}, {"flags", packed_array(flags)}};
  if (!data.planned_seconds.empty()) {
    json["planned_ms"] = packed_array(in_milliseconds(data.planned_seconds));
  }
  if (!data.measured.call_seconds.empty()) {
    json["measured_ms"] = packed_array(in_milliseconds(data.measured.call_seconds));
  }
  return json;
}

nlohmann::json nodes_json(const Graph& graph) {
  Words ops;
  std::vector<uint32_t> op;
  std::vector<std::string_view> names;
  for (const Node& node : graph.nodes) {
    names.push_back(node.name);
    op.push_back(ops.number(node.op->name));
  }
  return {{"names", names}, {"ops", ops.all()}, {"op", packed_array(op)}};
}

nlohmann::json frontier_json(const ReportData& data) {
  nlohmann::json points = nlohmann::json::array();
  for (const FrontierPoint& p : data.frontier) {
    points.push_back({{"planner", p.policy}, {"arena", p.arena.count}, {"ms", p.milliseconds}});
  }
  return {{"points", points},
          {"line", budget_policy()},
          {"costs", data.frontier_costs},
          {"chosen",
           {{"planner", data.plan.policy},
            {"arena", data.plan.arena.count},
            {"ms", 1e3 * data.plan.predicted_seconds}}}};
}

nlohmann::json headlines_json(const std::vector<Headline>& headlines) {
  nlohmann::json list = nlohmann::json::array();
  for (const Headline& h : headlines) {
    list.push_back({{"label", h.label}, {"value", h.value}, {"note", h.note}});
  }
  return list;
}

nlohmann::json recipe_json(const std::vector<RecipeLine>& lines) {
  nlohmann::json list = nlohmann::json::array();
  for (const RecipeLine& line : lines) {
    list.push_back({line.group, line.name, line.value, line.chosen});
  }
  return list;
}

}  // namespace

template <class T>
nlohmann::json packed_array(const std::vector<T>& numbers) {
  return {{"type", type_name<T>()}, {"data", base64(numbers.data(), numbers.size() * sizeof(T))}};
}
template nlohmann::json packed_array(const std::vector<uint8_t>&);
template nlohmann::json packed_array(const std::vector<uint32_t>&);
template nlohmann::json packed_array(const std::vector<float>&);
template nlohmann::json packed_array(const std::vector<double>&);

nlohmann::json curves_json(const std::vector<Curve>& curves) {
  nlohmann::json list = nlohmann::json::array();
  for (const Curve& curve : curves) {
    list.push_back({{"chart", curve.chart},
                    {"name", curve.name},
                    {"share", curve.share},
                    {"steps", packed_array(curve.steps)},
                    {"values", packed_array(curve.values)}});
  }
  return list;
}

nlohmann::json report_json(const ReportData& data) {
  std::vector<std::string_view> roles;
  for (int r = 0; r < kRoles; ++r) roles.push_back(name_of(static_cast<Role>(r)));
  nlohmann::json json = {{"format", "thimble-report-1"},
                         {"title", data.title},
                         {"subtitle", data.subtitle},
                         {"headlines", headlines_json(data.headlines)},
                         {"notes", data.notes},
                         {"unit", kArenaAlignment},
                         {"arena", data.plan.arena.count},
                         {"budget", data.budget.count},
                         {"peak_live", data.plan.peak_live.count},
                         {"peak_call", data.plan.peak_call},
                         {"microbatches", data.plan.microbatches},
                         {"costs", data.plan.costs},
                         {"predicted_ms", 1e3 * data.plan.predicted_seconds},
                         {"roles", roles},
                         {"nodes", nodes_json(data.graph)},
                         {"values", values_json(data)},
                         {"calls", calls_json(data)},
                         {"stays", allocations_json(allocations_of(data.graph, data.plan))},
                         {"recipe", recipe_json(data.recipe)}};
  if (data.choices) json["fit"] = to_json(*data.choices);
  if (!data.frontier.empty()) json["frontier"] = frontier_json(data);
  if (!data.curves.empty()) json["curves"] = curves_json(data.curves);
  if (data.measured_step_seconds > 0) json["measured_ms"] = 1e3 * data.measured_step_seconds;
  return json;
}

}  // namespace thimble
