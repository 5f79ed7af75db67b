#include "select/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/attempt.h"
#include "select/selection_limits.h"

namespace thimble {
namespace {

// The attr of ops that make scores of a vocabulary a few rows at a time.
constexpr std::string_view kRowsAtOnce = "rows_at_once";

constexpr const SelectionLimits& kLimits = kSelectionLimits;

bool mixes_rows(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op->mixes_rows; });
}

// So many of a batch at once: its rows or its tokens.
Change microbatch_of(const char* field, int64_t amount, int64_t of, const char* unit, bool mixes) {
  const bool few = amount * kLimits.few_statistics < of;
  return {.technique = "microbatch",
          .settings = {{field, amount}},
          .what = fmt::format("microbatches of {} {}{}", amount, unit,
                              mixes ? ", each with statistics of its own" : ""),
          .tier = mixes ? NumericsTier::approximate : NumericsTier::equivalent,
          .risk = mixes ? kLimits.statistics + (few ? kLimits.worse : 0) : 0};
}

std::vector<Change> microbatches(const Recipe& requested, bool mixes) {
  std::vector<Change> all;
  const auto add = [&](const char* field, int64_t amount, int64_t of, const char* unit) {
    all.push_back(microbatch_of(field, amount, of, unit, mixes));
  };
  const int64_t least = mixes ? kLimits.least_statistics : 1;
  if (requested.tokens > 0) {
    // A row at least, of the longest records.
    ModelOptions model = requested.model;
    complete_model(model);
    int64_t longest = model.length;
    for (const int64_t length : requested.lengths) longest = std::max(longest, length);
    for (int64_t count = 2; requested.tokens / count >= least * std::max<int64_t>(1, longest);
         count *= 2) {
      add("microbatch-tokens", requested.tokens / count, requested.tokens, "tokens");
    }
    return all;
  }
  const Microbatches whole = microbatches_of(requested);
  for (const int64_t rows : rows_to_try(whole.batch, least)) {
    add("microbatch", rows, whole.batch, rows == 1 ? "row" : "rows");
  }
  return all;
}

// Adapters are kept in fp32 by themselves, so --master has nothing to say beside them.
std::vector<Change> precisions(bool adapts) {
  const auto make = [](Settings settings, const char* what, double risk) {
    return Change{"precision", std::move(settings), what, NumericsTier::approximate, risk};
  };
  std::vector<Change> all = {
      make({{"precision", "bf16"}, {"master", true}}, "bf16, weights in fp32",
           kLimits.sixteen_bits),
      make({{"precision", "fp16"}, {"rounding", "stochastic"}},
           "fp16, rounded stochastically, the loss scaled", kLimits.sixteen_bits),
      make({{"precision", "bf16"}, {"rounding", "stochastic"}}, "bf16, rounded stochastically",
           kLimits.sixteen_bits)};
  if (adapts) all.erase(all.begin());
  return all;
}

std::vector<Change> codecs(const Graph& graph, NumericsTier allow) {
  std::vector<Change> all;
  CodecSpec any;
  any.codec = sign_codec();
  const auto encodable = find_encodable(graph, any);
  if (std::ranges::any_of(encodable, &Encodable::signs)) {
    all.push_back(
        {"codec", {{"codec", "mask"}}, "masks in place of relu's results", NumericsTier::exact});
  }
  if (allow < NumericsTier::approximate || encodable.empty()) return all;
  for (const auto& [name, worse] : {std::pair("fp16", 0.0),
                                    {"int8", 0.0},
                                    {"int4", kLimits.worse},
                                    {"int2", 2 * kLimits.worse}}) {
    all.push_back({"codec",
                   {{"codec", name}},
                   fmt::format("activations kept as {}", name),
                   NumericsTier::approximate,
                   kLimits.codec + worse});
  }
  return all;
}

std::vector<Change> densities() {
  std::vector<Change> all;
  double risk = kLimits.sparsity;
  for (const double density : {0.5, 0.3, 0.1}) {
    all.push_back({"sparsity",
                   {{"density", density}},
                   fmt::format("{:g} of the weights", density),
                   NumericsTier::approximate,
                   risk});
    risk += kLimits.sparser;
  }
  return all;
}

// Formats of frozen matrices, where there are any that no format was chosen for. 16 bits are as near as
// activations in 16 bits are, and 4 bits are the farthest.
std::vector<Change> frozen_formats(const Recipe& requested, const Graph& graph) {
  const bool any = std::ranges::any_of(graph.values, [](const Value& value) {
    return value.role == Role::frozen && value.type.shape.rank() == 2 &&
           value.type.dtype == DType::f32;
  });
  if (!any || requested.tuning.frozen) return {};
  std::vector<Change> all;
  for (const auto& [name, risk] : {std::pair("bf16", kLimits.sixteen_bits),
                                   {"int8", kLimits.frozen},
                                   {"nf4", kLimits.frozen + 2 * kLimits.worse}}) {
    all.push_back({"frozen",
                   {{"frozen", name}},
                   fmt::format("frozen weights in {}", name),
                   NumericsTier::approximate,
                   risk});
  }
  return all;
}

// Fewer tokens with logits at a time, where a frozen weight makes them: it is read once more for every
// group of them. One that is trained would have all of its gradient added to as often. Not where the
// backend's kernels take no less scratch so.
std::vector<Change> loss_rows(const Recipe& requested, const ModelOptions& model,
                              const Graph& graph, Backend& backend) {
  const int64_t rows = kLimits.few_logits;
  if (!requested.tuning.adapters.enabled() || model.batch * model.length <= rows) return {};
  // The nodes that have the attribute are of one loss, and of one shape.
  const auto made = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return node.attrs.has(kRowsAtOnce); });
  if (made == graph.nodes.end()) return {};
  Signature signature = signature_of(graph, make_id<NodeId>(made - graph.nodes.begin()));
  const Bytes usual = backend.kernel(signature).workspace;
  signature.attrs.set(kRowsAtOnce, rows);
  if (backend.kernel(signature).workspace >= usual) return {};
  Recipe copy = requested;
  bool there = false;
  for_each_field(copy, [&](const Field& field) { there |= field.name() == "loss-rows"; });
  if (!there) return {};
  return {{"loss rows",
           {{"loss-rows", rows}},
           fmt::format("logits of {} tokens at a time", rows),
           NumericsTier::equivalent}};
}

std::string spelt(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string flags_of(const Settings& settings) {
  std::string flags;
  for (const auto& [name, value] : settings) {
    if (value == false) continue;
    flags += fmt::format("{}--{}", flags.empty() ? "" : " ", name);
    if (value != true) flags += " " + spelt(value);
  }
  return flags;
}

Settings all_changes(const Candidate& candidate) {
  Settings settings;
  for (const Change& change : candidate.changes) {
    settings.insert(change.settings.begin(), change.settings.end());
  }
  return settings;
}

std::vector<int64_t> rows_to_try(int64_t batch, int64_t least) {
  std::vector<int64_t> rows;
  int64_t last = batch;
  const auto add = [&](int64_t next) {
    rows.push_back(next);
    last = next;
  };
  const auto ratio = [&](int64_t next) {
    return static_cast<double>(last) / static_cast<double>(next);
  };
  while (last > least) {
    // The next divisor, not too near; half of the last where that is far.
    int64_t next = 0;
    for (int64_t count = batch / last + 1; count <= batch && next == 0; ++count) {
      if (batch % count == 0 && ratio(batch / count) >= kLimits.near_rows) next = batch / count;
      if (ratio(std::max<int64_t>(1, batch / count)) > kLimits.far_rows) break;
    }
    if (next == 0) next = (last + 1) / 2;
    if (next < least) break;
    add(next);
  }
  return rows;
}

std::vector<int64_t> rows_between(int64_t batch, int64_t more, int64_t fewer, int64_t least) {
  std::vector<int64_t> rows;
  int64_t last = more;
  for (int64_t count = batch / more + 1; count <= batch; ++count) {
    const int64_t next = (batch + count - 1) / count;
    if (next <= fewer) break;
    const int64_t rest = batch % next;
    const bool near =
        static_cast<double>(last) < kLimits.near_rows_between * static_cast<double>(next);
    if (near || next >= more || (rest > 0 && rest < least)) continue;
    rows.push_back(last = next);
  }
  return rows;
}

std::vector<Change> microbatches_between(const Recipe& requested, const Change& more,
                                         const Change& fewer) {
  const auto a = more.settings.find("microbatch"), b = fewer.settings.find("microbatch");
  if (a == more.settings.end() || b == fewer.settings.end()) return {};
  const bool mixes = fewer.tier == NumericsTier::approximate;
  const int64_t batch = microbatches_of(requested).batch;
  std::vector<Change> all;
  for (const int64_t rows : rows_between(batch, a->second.get<int64_t>(), b->second.get<int64_t>(),
                                         mixes ? kLimits.least_statistics : 1)) {
    all.push_back(microbatch_of("microbatch", rows, batch, "rows", mixes));
  }
  return all;
}

Choices choices_for(const Recipe& requested, const Settings& explicit_settings, NumericsTier allow,
                    const Graph& graph, Backend& backend) {
  Recipe copy = requested;
  std::set<std::string_view> pinned;
  for_each_field(copy, [&](const Field& field) {
    if (explicit_settings.contains(field.name())) pinned.insert(field.about().technique);
  });
  const OptimizerSpec& optimizer = requested.optimizer;
  const UpdateRule& rule = rule_of(optimizer);
  Choices choices;
  const auto offer = [&](std::string_view technique, std::vector<Change> changes) {
    std::erase_if(changes, [&](const Change& change) { return change.tier > allow; });
    if (!pinned.contains(technique) && !changes.empty()) choices.push_back(std::move(changes));
  };
  offer("codec", codecs(graph, allow));
  ModelOptions model = requested.model;
  complete_model(model);
  const PartsOfBatches parts = parts_of_batches(model);
  const bool in_parts =
      parts.refused.empty() && !parts.labels_all_count && !(parts.late && optimizer.fold);
  if (!optimizer.clip_two_pass && in_parts) {
    offer("microbatch", microbatches(requested, mixes_rows(graph)));
  }
  // Behind microbatches: it is their sums that it does away with.
  if (rule.folds && optimizer.momentum > 0 && !optimizer.fold && !parts.late) {
    offer("fold", {{"fold",
                    {{"fold", true}},
                    "gradients folded into the momentum",
                    NumericsTier::equivalent}});
  }
  offer("loss rows", loss_rows(requested, model, graph, backend));
  offer("frozen", frozen_formats(requested, graph));
  const bool adapts = requested.tuning.adapters.enabled();
  offer("precision", precisions(adapts));
  offer("state", {{"state",
                   {{"state-bits", 8}},
                   "optimizer state in 8 bits",
                   NumericsTier::approximate,
                   kLimits.state}});
  if (!adapts) offer("sparsity", densities());
  return choices;
}

std::optional<Candidate> with_changes(const Recipe& requested, std::vector<Change> changes) {
  const auto order = [](const Change& change) { return std::pair(change.tier, change.risk); };
  std::ranges::stable_sort(changes, {}, order);
  const bool eight_bits = std::ranges::any_of(
      changes, [](const Change& change) { return change.technique == "state"; });
  Candidate candidate = {.changes = std::move(changes), .recipe = requested};
  Settings settings;
  for (Change& change : candidate.changes) {
    // State in 8 bits cannot move with nonzeros.
    if (change.technique == "sparsity" && eight_bits) {
      change.settings["sparsity"] = "static";
      change.what += ", which stay where they are";
      change.risk += kLimits.immovable;
    }
    settings.insert(change.settings.begin(), change.settings.end());
    candidate.tier = std::max(candidate.tier, change.tier);
    candidate.risk += change.risk;
  }
  return if_allowed([&] {
    configure(candidate.recipe, settings);
    check(candidate.recipe);
    return candidate;
  });
}

}  // namespace thimble
