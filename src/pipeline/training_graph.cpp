#include "pipeline/training_graph.h"

#include <algorithm>
#include <cmath>

#include "autodiff/autodiff.h"
#include "base/error.h"
#include "graph/order.h"
#include "pipeline/fine_tuning.h"
#include "plan/make_plan.h"
#include "plan/schedule/chain.h"
#include "plan/schedule/recompute.h"
#include "plan/schedule/segments.h"
#include "transform/accumulate.h"
#include "transform/clip.h"
#include "transform/fuse_loss_into_backward.h"
#include "transform/loss_factor.h"
#include "transform/peak_reducing_order.h"

namespace thimble {
namespace {

// The memory that an order of the nodes takes.
struct OrderCost {
  Bytes kept;         // at its fullest, everything computed once
  Bytes in_segments;  // likewise, with about sqrt(n) segments recomputed
  int64_t crossing =
      0;  // from node to node of the forward pass, added up: what segments have to keep

  // Scratch plays no part: the order must not depend on the device.
  explicit OrderCost(const Graph& graph) {
    const Costs no_costs{.nodes = std::vector<NodeCost>(graph.nodes.size()), .source = ""};
    const PlanRequest request = {.graph = graph, .costs = no_costs};
    kept = cost_of(request, schedule_without_recompute(request)).live_peak;
    const ForwardPass pass(graph);
    for (const Bytes bytes : crossing_bytes(pass)) crossing += bytes.count;
    const std::vector<Block> blocks = cut_into_blocks(pass, no_costs);
    const auto segments =
        static_cast<size_t>(std::sqrt(static_cast<double>(std::max<size_t>(1, blocks.size()))));
    const Schedule again = schedule_segments(pass, blocks, equal_starts(blocks, segments));
    in_segments = cost_of(request, again).live_peak;
  }
};

// Replaces the order of the nodes by one with a lower live peak, if that does not carry more through the
// forward pass, and not much more with recomputed segments. For segments, gradients had better come in the
// order of their forward nodes.
void order_for_memory(Graph& graph) {
  Graph other = graph;
  put_in_order(other, peak_reducing_order(graph));
  const OrderCost here(graph), there(other);
  const bool leaner = there.kept < here.kept && there.crossing <= here.crossing;
  if (leaner && there.in_segments.count / 5 <= here.in_segments.count / 4) graph = std::move(other);
}

void check_sparse_state(const OptimizerSpec& optimizer, const SparsitySpec& sparsity) {
  user_check(!sparsity.enabled() || rule_of(optimizer).op.empty(),
             "{} keeps rows and columns of each weight, which packed nonzeros do not have; choose "
             "--optimizer adam (with --state-bits 8 --sparsity static for less state), or leave "
             "--density out",
             optimizer.name);
  const bool moves = sparsity.enabled() && sparsity.method != SparseMethod::fixed;
  user_check(!moves || optimizer.state_bits == 32,
             "optimizer state in {} bits cannot move with sparse weights; choose --state-bits 32, "
             "or --sparsity static",
             optimizer.state_bits);
}

void check_ranks(const RanksSpec& ranks, const OptimizerSpec& optimizer,
                 const SparsitySpec& sparsity) {
  if (!ranks.several()) return;
  const std::string_view shard = name_of(ranks.shard);
  user_check(
      !optimizer.clip_two_pass,
      "--clip-two-pass finds the norm before the ranks have summed their gradients; leave it "
      "out, or train on one rank");
  user_check(!ranks.parts() || !optimizer.fold,
             "--fold keeps gradients inside of a momentum that every rank has, so that there is no "
             "part of it to keep (--shard {}); choose --shard none, or leave --fold out",
             shard);
  user_check(
      !ranks.parts() || rule_of(optimizer).op.empty(),
      "{} keeps rows and columns of each weight, which parts of it (--shard {}) do not have; "
      "choose --shard none, or --optimizer adam",
      optimizer.name, shard);
  user_check(
      !sparsity.enabled() || ranks.shard != Shard::weights,
      "packed nonzeros are not gathered weight by weight; choose --shard gradients, or leave "
      "--density out");
  user_check(!sparsity.enabled() || !ranks.parts() || sparsity.method == SparseMethod::fixed,
             "nonzeros that move take state with them, of which a rank has a part (--shard {}); "
             "choose --shard none, or --sparsity static",
             shard);
}

// Results of the model become sums over the ranks and over the microbatches.
void sum_results(Model& model, const RanksSpec& ranks, bool several_microbatches) {
  const std::vector<ValueId> shares = model.graph.results;
  reduce_results(model.graph, ranks);
  if (several_microbatches) accumulate_results(model.graph);
  const auto follow = [&](ValueId& value) {
    const auto at = std::ranges::find(shares, value);
    if (at != shares.end()) value = model.graph.results[static_cast<size_t>(at - shares.begin())];
  };
  follow(model.loss);
  for (Metric& metric : model.metrics) {
    follow(metric.sum);
    follow(metric.count);
  }
}

// Where the loss has a weight that is known behind the last part: its results are summed here, in
// front of every update, and its loss divided. Invalid where it has none.
ValueId add_loss_factor(Model& model, const RanksSpec& ranks, bool several_microbatches) {
  if (!model.late_factor) return {};
  const ValueId factor =
      add_loss_factor(model.graph, *model.late_factor, ranks, several_microbatches);
  sum_results(model, ranks, several_microbatches);
  Builder b(model.graph);
  b.set_backward(true);
  b.set_phase(several_microbatches ? Phase::epilogue : Phase::per_microbatch);
  const auto result = std::ranges::find(model.graph.results, model.loss);
  *result = model.loss = b.op("mul", {model.loss, factor});
  return factor;
}

}  // namespace

TrainingGraph make_training_graph(const ModelOptions& options, const OptimizerSpec& optimizer,
                                  const Marks& marks, int microbatches,
                                  const SparsitySpec& sparsity, const CodecSpec& codec,
                                  const RanksSpec& ranks, const FineTuning& tuning) {
  TrainingGraph training;
  ModelOptions part = options;
  if (part.step_batch == 0 && (microbatches > 1 || ranks.several())) {
    part.step_batch = part.batch * microbatches * ranks.count;
  }
  part.counts_beforehand = optimizer.fold;
  training.model = build_model(std::move(part));
  training.sparsity = sparsity;
  apply(tuning, training.model);
  Graph& graph = training.model.graph;
  sparsify(graph, sparsity);
  check_ranks(ranks, optimizer, sparsity);
  shard_weights(graph, ranks, shard_granularity(optimizer));

  std::vector<ValueId> weights;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].role == Role::weight) weights.push_back(make_id<ValueId>(v));
  }
  user_check(!training.model.carry_state.valid() || microbatches == 1,
             "a state that is carried from step to step is of the rows of a whole batch; leave "
             "--microbatch or --carried-state out");
  check_optimizer(optimizer, microbatches > 1);
  check_sparse_state(optimizer, sparsity);
  const std::vector<ValueId> wanted = differentiated(graph, weights);
  const GradientRoot root = {training.model.loss, add_loss_scale(graph, optimizer.scaling)};
  std::vector<ValueId> gradients = add_gradients(graph, {&root, 1}, wanted);
  if (optimizer.clip_two_pass) {  // those were for the norm; the same again, for the updates
    const GradientRoot clipped = {training.model.loss,
                                  add_early_clip_factor(graph, gradients, optimizer.clip_norm,
                                                        root.upstream, optimizer.scaling)};
    gradients = add_gradients(graph, {&clipped, 1}, wanted);
  }
  fuse_loss_into_backward(graph);
  if (sparsity.enabled()) gather_early(graph);
  training.model.rng = encode_activations(graph, codec, training.model.rng);
  const ValueId loss_factor = add_loss_factor(training.model, ranks, microbatches > 1);
  training.scalars =
      add_updates(graph, weights, gradients, optimizer, microbatches > 1, root.upstream,
                  training.model.rng, loss_factor, training.model.weight_settings, ranks);
  training.model.rng = training.scalars.rng;
  const bool in_parts = microbatches > 1 || ranks.several();
  if (in_parts && !loss_factor.valid()) sum_results(training.model, ranks, microbatches > 1);
  if (training.scalars.overflow.valid()) graph.results.push_back(training.scalars.overflow);
  sort_by_phase(graph);
  order_for_memory(graph);
  apply_marks(graph, marks);
  verify_graph(graph);
  return training;
}

TrainingGraph make_graph(const Recipe& recipe, const StepShape& shape) {
  ModelOptions options = recipe.model;
  complete_model(options, device_traits(recipe.device).has_memory);
  options.ranks = recipe.ranks.count;
  const int most = most_microbatches(recipe);
  if (most > 1) options.step_batch = microbatches_of(recipe, shape.length).batch;
  return make_training_graph(options_for(std::move(options), shape), recipe.optimizer, recipe.marks,
                             most / recipe.ranks.count, recipe.sparsity, recipe.codec, recipe.ranks,
                             recipe.tuning);
}

namespace {

std::vector<StepShape> shapes_by_tokens(const Recipe& recipe) {
  const auto tokens = [](const StepShape& shape) { return shape.rows * shape.length; };
  const std::vector<StepShape> batches = token_batches(recipe);
  const int64_t most = std::ranges::max_element(batches, {}, tokens)->length;
  std::vector<StepShape> shapes;
  for (const StepShape& batch : batches) {
    const Microbatches parts = microbatches_of(recipe, batch.length);
    shapes.push_back({.rows = parts.rows, .length = batch.length});
    if (parts.rest > 0) shapes.push_back({.rows = parts.rest, .length = batch.length});
  }
  std::ranges::stable_sort(shapes, std::greater(), tokens);
  // In front, those whose whole batch has most: what is computed at once does not decide which.
  const auto at = std::ranges::find(shapes, most, &StepShape::length);
  std::rotate(shapes.begin(), at, at + 1);
  return shapes;
}

}  // namespace

std::vector<StepShape> step_shapes(const Recipe& recipe) {
  if (recipe.tokens > 0) return shapes_by_tokens(recipe);
  const Microbatches parts = microbatches_of(recipe);
  std::vector<int64_t> lengths = recipe.lengths;
  std::ranges::sort(lengths, std::greater());
  if (lengths.empty()) lengths.push_back(0);
  std::vector<StepShape> shapes;
  for (const int64_t length : lengths) {
    user_check(recipe.lengths.empty() || length >= 1, "a length is 1 at least, not {}", length);
    shapes.push_back({.rows = parts.rows, .length = length});
    if (parts.rest > 0) shapes.push_back({.rows = parts.rest, .length = length});
  }
  return shapes;
}

StepShape largest_shape(const Recipe& recipe) { return step_shapes(recipe).front(); }

NumericsTier allowed_tier(const Recipe& recipe, const Graph& graph, const CodecSpec& codec) {
  check_allowed(codec, recipe.allow);
  const int count = most_microbatches(recipe);
  const NumericsTier tier = std::max(tier_of(graph, count, recipe.optimizer), tier_of(codec));
  check_allowed(graph, tier, recipe.allow, count, recipe.optimizer);
  return tier;
}

}  // namespace thimble
