#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/io/file.h"
#include "base/number/finite.h"
#include "comm/small_collectives.h"
#include "recipe/settings.h"
#include "train/check_plans.h"
#include "transform/sparse_weights.h"
#include "weights/adapter_file.h"
#include "weights/base_weights.h"
#include "weights/checkpoint.h"
#include "weights/outside_tensors.h"
#include "weights/weights_file.h"
#include "weights/write_onnx.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostSteps = int64_t{1} << 40;  // of an optimizer, before a run

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Entries of a row that the loss is a mean over; 0: it is one over rows.
int64_t tokens_of_row(const Model& model) {
  if (model.loss_counts.empty()) return 0;
  const Feed& feed = model.feed(model.loss_counts);
  const Shape& shape = model.graph[feed.value].type.shape;
  return shape.elements() / shape[feed.row_axis];
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of what was traced, the calls that ranks take part in.
double seconds_with_ranks(const TrainingStep::Part& part) {
  double seconds = 0;
  for (size_t s = 0; s < part.trace.call_seconds.size(); ++s) {
    const Node& node = part.model().graph[part.plan().calls[s].node];
    if (node.op->collective) seconds += part.trace.call_seconds[s];
  }
  return seconds;
}

// Weights, optimizer state, and the statistics that nodes write; neither constants nor frozen weights.
std::vector<bool> changed_by_training(const Graph& graph) {
  std::vector<bool> changes(graph.values.size(), false);
  for (const ValueId before : previous_versions(graph)) {
    if (before.valid()) changes[before.at()] = true;
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool trained = value.role == Role::weight || value.role == Role::optimizer_state;
    const bool written = value.role == Role::statistic && changes[v];
    changes[v] = !value.producer.valid() && (trained || written);
  }
  return changes;
}

// Numbers that nobody trains and that are not finite on purpose, such as a mask's minus infinity.
std::vector<bool> infinite_constants(Program& program) {
  const Graph& graph = program.graph();
  const std::vector<bool> changes = changed_by_training(graph);
  std::vector<bool> infinite(graph.values.size(), false);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role) || changes[v]) continue;
    const HostMapping mapping = program.map_to_host(make_id<ValueId>(v), HostMapping::Use::read);
    infinite[v] = !all_finite(mapping.bytes(), value.type.dtype);
  }
  return infinite;
}

}  // namespace

Trainer::Trainer(PlannedTraining& planned, const BatchSource& source, TrainOptions options)
    : planned_(planned),
      source_(source),
      options_(std::move(options)),
      steps_per_epoch_(source.steps_per_epoch(planned.microbatches.batch)),
      steps_(planned.recipe.schedule.total_steps(steps_per_epoch_)),
      rate_(planned.recipe.schedule.in_steps(steps_per_epoch_)),
      accumulated_(planned.full().model),
      scaler_(planned.recipe.optimizer.scaling) {
  const int64_t batch = planned_.microbatches.batch;
  user_check(source_.bucket(0) != nullptr || batch <= source_.train_count(),
             "a batch of {} is more than the {} training records", batch, source_.train_count());
  source_.check(planned_.full().model);
  evaluations_ = plan_evaluation(planned_);
  if (ranks() != nullptr) check_plans(*ranks(), planned_.steps, evaluations_);
  arena_ = planned_.backend().allocate(planned_.plan().arena);
  step_ = std::make_unique<TrainingStep>(planned_, source_, *arena_, recipe().seed);
  for (const auto& variant : evaluations_) {
    evaluators_.emplace_back(*variant, planned_.full(), planned_.backend(), *arena_);
  }
  start();
  if (!options_.out.empty() && first_rank()) {  // when nothing else can be wrong
    ensure_directory(options_.out);
    remove_old_checkpoints(options_.out, recipe().keep_checkpoints);
    record_plan(options_.out, planned_);
  }
  const bool logs = first_rank();
  log_ = std::make_unique<RunLog>(logs ? options_.out : "", logs ? options_.tensorboard : "",
                                  result_.resumed_at, steps_);
}

Trainer::~Trainer() = default;

bool Trainer::first_rank() const { return ranks() == nullptr || ranks()->rank() == 0; }

bool Trainer::asked_to_stop() const {
  const bool asked = options_.stop && options_.stop();
  return ranks() == nullptr ? asked : any_rank(*ranks(), asked);
}

void Trainer::start() {
  optimizer_steps_ = options_.optimizer_steps;
  set_first_values(program(), planned_.full().model, recipe().seed, options_.first_values);
  source_.describe(program(), planned_.full().model);
  if (!options_.weights.empty()) {
    weights_note_ = load_weights(options_.weights, program(), planned_.full().model.foreign);
  }
  if (options_.resume) {
    const std::optional<std::string> folder = latest_checkpoint(options_.out);
    user_check(folder.has_value(), "there is no checkpoint in '{}' to resume from", options_.out);
    const nlohmann::json begun = recipe_of_checkpoint(*folder);
    check_record(begun, recipe(), fmt::format("the checkpoint in '{}'", *folder));
    nlohmann::json bits = bits_of(recipe(), begun);
    if (begun.value("ranks", nlohmann::json(1)) != recipe().ranks.count) {
      for (const char* key : {"microbatch", "microbatch_tokens"}) bits.erase(key);
    }
    base_ = base_of_checkpoint(*folder);
    load_base(base_, *folder, program(), planned_.full().model);
    const Position position = load_checkpoint(*folder, program(), bits, options_.fingerprint);
    result_.resumed_at = result_.steps = position.step;
    result_.checkpoint = *folder;
    if (options_.saved) options_.saved(*folder);
    user_check(accumulated_.from_json(position.progress),
               "the checkpoint in '{}' is damaged: its progress is not what was saved", *folder);
    user_check(!scaler_.dynamic() ||
                   scaler_.from_json(position.progress.value("loss_scale", nlohmann::json())),
               "the checkpoint in '{}' is damaged: its loss scale is not what was saved", *folder);
    const nlohmann::json before = position.progress.value("optimizer_steps", nlohmann::json(0));
    user_check(before.is_number_integer() && before >= 0 && before <= kMostSteps,
               "the checkpoint in '{}' is damaged: its optimizer's steps are not what was saved",
               *folder);
    optimizer_steps_ = before.get<int64_t>();
    user_check(position.step <= steps_,
               "the checkpoint in '{}' is at step {}, beyond the {} steps asked for", *folder,
               position.step, steps_);
  }
  step_->set_steps_before(optimizer_steps_);
  const SparsitySpec& sparsity = recipe().sparsity;
  if (sparsity.enabled() && sparsity.method != SparseMethod::fixed) {
    reallocator_ = std::make_unique<Reallocator>(program(), sparsity, recipe().seed);
    reallocations_ = reallocation_schedule(recipe().reallocate_every, steps_per_epoch_, steps_);
  }
  if (options_.on_microbatch) step_->on_microbatch(options_.on_microbatch);
  // The check runs between the forward pass and the first update of a weight. So a bad step spoils
  // running statistics alone, and momentum that gradients are folded into. A remote
  // device has been through the whole step by then.
  step_->watch_loss([this] {
    if (!std::isfinite(step_->loss())) explain_non_finite();
  });
}

std::string Trainer::kept() const {
  return result_.checkpoint.empty()
             ? "no checkpoint had been saved yet"
             : fmt::format("the last good checkpoint is {}", result_.checkpoint);
}

std::string Trainer::non_finite_value(bool with_statistics) const {
  Program& program = step_->program();
  const Graph& graph = program.graph();
  const std::vector<bool> changes = changed_by_training(graph);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (!changes[v] || (value.role == Role::statistic && !with_statistics)) continue;
    const HostMapping mapping = program.map_to_host(make_id<ValueId>(v), HostMapping::Use::read);
    if (!all_finite(mapping.bytes(), value.type.dtype)) {
      return fmt::format("{} '{}'", name_of(value.role), value.name);
    }
  }
  return "";
}

// Runs the forward pass of the microbatch again, looking at every value as it is made.
void Trainer::explain_non_finite() {
  const MicrobatchId which = step_->current();
  const auto name_fault = [&](std::string_view where) {
    const bool scaled = recipe().optimizer.scaling.kind == LossScaling::Kind::fixed;
    throw UserError(fmt::format(
        "the loss is not finite at step {}: {} is the first value that is not; {}; try {}a lower "
        "--lr, a warm-up (--warmup), or another --seed",
        which.step + 1, where, kept(),
        scaled ? "a lower --loss-scale (gradients may have overflowed) or a dynamic one, " : ""));
  };
  // Weights first: they are as the step before left them, or, on a remote device, as this one did.
  // Running statistics have seen this forward pass already, so they say nothing about where it went
  // wrong.
  if (const std::string value = non_finite_value(false); !value.empty()) {
    name_fault(planned_.backend().has_device_memory() ? value + " (after its update)" : value);
  }
  TrainingStep::Part& part = step_->part_of(which);
  const Model& model = part.model();
  std::vector<bool> infinite = infinite_constants(part.program());
  step_->feed(which, last_rate_);
  part.program().run_until(part.program().calls_until(model.loss), [&](size_t s) {
    const PlannedCall& planned = part.plan().calls[s];
    const Node& node = model.graph[planned.node];
    const bool of_infinite = std::ranges::any_of(
        node.inputs, [&](ValueId input) -> bool { return infinite[input.at()]; });
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const DType dtype = model.graph[node.outputs[k]].type.dtype;
      const HostMapping mapping = part.program().output_of(s, k);
      if (all_finite(mapping.bytes(), dtype)) continue;
      if (!of_infinite || any_nan(mapping.bytes(), dtype)) {
        name_fault(fmt::format("the output of '{}'", node.name));
      }
      infinite[node.outputs[k].at()] = true;
    }
  });
  name_fault("the loss");
}

bool Trainer::is_traced(int64_t step) const {
  constexpr int64_t kWarm = 2;    // steps until caches and clocks are
  constexpr int64_t kTraced = 3;  // the fastest of them is kept
  const int64_t first = std::min(result_.resumed_at + kWarm, steps_ - 1);
  return !options_.out.empty() && first <= step && step < first + kTraced;
}

double Trainer::rate_of(int64_t step) const {
  const double scheduled = rate_at(rate_, step);
  return options_.rate ? options_.rate(step, scheduled) : scheduled;
}

void Trainer::step(int64_t step) {
  user_check(!step_->spoiled(),
             "a step was left in its middle, so that this run cannot go on; {}; go on from there",
             kept());
  if (step % steps_per_epoch_ == 0) accumulated_.clear();
  if (scaler_.dynamic()) step_->set_loss_scale(scaler_.scale(), scaler_.skipped());
  const bool traced = is_traced(step);
  if (traced) {
    for (TrainingStep::Part& part : step_->parts()) part.trace = {};
  }
  last_rate_ = rate_of(step);
  step_->run(step, last_rate_, traced);
  if (traced) {
    double seconds = 0;
    for (const TrainingStep::Part& part : step_->parts()) {
      seconds += part.trace.seconds;
      traced_with_ranks_ += seconds_with_ranks(part);
    }
    traced_ += seconds;
    const bool fastest = fastest_trace_ == 0 || seconds < fastest_trace_;
    if (fastest && first_rank()) {
      std::vector<TimedPart> parts;
      for (const TrainingStep::Part& part : step_->parts()) {
        parts.push_back({part.variant(), part.trace, part.runs, &part == &step_->result()});
      }
      record_trace(options_.out, parts, step + 1);
      fastest_trace_ = seconds;
    }
  }
  scaler_.step_done(step_->overflowed());
  result_.losses.push_back(static_cast<double>(step_->loss()));
  const TrainingStep::Part& done = step_->result();
  accumulated_.add(done.program(), done.model(), step_->counted(), 1);
  if (reallocator_ && reallocations_.due(step + 1)) {
    reallocator_->run(step + 1);
    ++result_.reallocations;
  }
}

Figures Trainer::advance() {
  const int64_t step = result_.steps;
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  step_->end_before(source_.known_ahead() ? kNever : step + 1);
  this->step(step);
  result_.steps = step + 1;
  const TrainingStep::Part& done = step_->result();
  MetricAccumulator own(done.model());
  own.add(done.program(), done.model(), step_->counted(), 1);
  return own.figures();
}

BoundStep& Trainer::evaluator_of(const BatchSource& source, int64_t first) {
  const auto length = [](const BoundStep& evaluator) { return evaluator.variant().shape.length; };
  BoundStep* fitting = &*std::ranges::max_element(evaluators_, {}, length);
  for (BoundStep& evaluator : evaluators_) {
    const int64_t rows = evaluator.variant().shape.rows;
    const bool holds = source.longest_test(first, rows) <= length(evaluator);
    if (holds && length(evaluator) <= length(*fitting)) fitting = &evaluator;
  }
  return *fitting;
}

std::optional<Figures> Trainer::evaluate(const BatchSource& source, int64_t* count) {
  MetricAccumulator accumulated(planned_.full().model);
  const int64_t most = source.test_count();
  const int others = ranks() == nullptr ? 1 : ranks()->size();
  // Ranks take turns, but where they have to gather weights for each other.
  const bool together =
      others == 1 || std::ranges::any_of(evaluators_[0].model().graph.nodes,
                                         [](const Node& node) { return node.op->collective; });
  int64_t first = 0;
  for (int turn = 0; first < most; ++turn) {
    if ((together || turn % others == 0) && asked_to_stop()) return std::nullopt;
    BoundStep& evaluator = evaluator_of(source, first);
    if (first + evaluator.variant().shape.rows > most && evaluator.model().whole_batches) {
      user_check(
          first > 0,
          "{} is tested on whole batches, and {} records are fewer than the {} of one; choose "
          "a smaller --microbatch, or leave testing out (--no-eval)",
          evaluator.model().options.name, most, evaluator.variant().shape.rows);
      break;
    }
    if (!together && turn % others != ranks()->rank()) {
      first += std::min(evaluator.model().rows(), most - first);
      continue;
    }
    // Training reuses the bytes of whatever only evaluation keeps (an LSTM's first state).
    evaluator.set_own_constants(recipe().seed);
    evaluator.feed_rng(recipe().seed, 0, turn);  // the same numbers in every test
    const TestRows filled = source.fill_test(evaluator.program(), evaluator.model(), first);
    if (filled.rows == 0) break;
    evaluator.feed_row_counts(filled.rows);
    evaluator.program().run();
    accumulated.add(evaluator.program(), evaluator.model(), filled.counted, filled.counted);
    first += filled.rows;
  }
  if (!together) accumulated.add_up(*ranks());
  if (count != nullptr) *count = first;
  return accumulated.figures();
}

bool Trainer::test() {
  if (!recipe().evaluate) return true;
  const std::optional<Figures> figures = evaluate(source_, &result_.test_count);
  if (figures) result_.test = *figures;
  return figures.has_value();
}

void Trainer::record(const LoggedStep& done, bool tested, bool saving) {
  log_->add_step(done);
  if (tested) log_->add_test(done, accumulated_.figures(), result_.test);
  if (saving) log_->flush();
}

std::string Trainer::save() {
  internal_check(!options_.out.empty(), "a checkpoint without a folder");
  user_check(!step_->spoiled(), "a step was left in its middle, so nothing was saved; {}", kept());
  // The loss does not know yet what the last update did.
  const std::string fault = non_finite_value(true);
  user_check(fault.empty(),
             "{} is not finite after step {}, so nothing was saved; {}; try a lower --lr, a "
             "warm-up (--warmup), or another --seed",
             fault, result_.steps, kept());
  Position position;
  position.step = result_.steps;
  position.recipe = to_json(recipe());
  position.progress = accumulated_.to_json();
  position.data = options_.fingerprint;
  if (base_.is_null() && has_frozen(program().graph()) && first_rank()) {
    const std::string& own = planned_.full().model.first_values;
    const bool starts_there = options_.weights.empty() || is_adapter_folder(options_.weights);
    base_ = describe_base(starts_there ? own : options_.weights);
  }
  position.base = base_;
  if (optimizer_steps_ > 0) position.progress["optimizer_steps"] = optimizer_steps_;
  if (scaler_.dynamic()) position.progress["loss_scale"] = scaler_.to_json();
  result_.checkpoint =
      save_checkpoint(options_.out, program(), position, recipe().keep_checkpoints);
  if (options_.saved) options_.saved(result_.checkpoint);
  return result_.checkpoint;
}

TrainResult Trainer::run(const std::function<void(const Progress&)>& show) {
  try {
    return run_steps(show);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("{}; {}{}", error.what(), kept(),
                                  result_.checkpoint.empty() ? "" : ": go on with --resume"));
  }
}

TrainResult Trainer::run_steps(const std::function<void(const Progress&)>& show) {
  const int64_t save_every = recipe().save_every.steps(steps_per_epoch_);
  const int64_t evaluate_every = recipe().evaluate_every.steps(steps_per_epoch_);
  const bool kept_on_disk = !options_.out.empty();
  Pace pace = {.first = result_.steps};
  step_->end_before(steps_);
  const auto todo = static_cast<size_t>(std::max<int64_t>(0, steps_ - pace.first));
  result_.seconds.reserve(todo);
  result_.losses.reserve(todo);
  const Clock::time_point started = Clock::now();

  for (int64_t step = pace.first; step < steps_; ++step) {
    timed_step(step, pace);
    const bool last = step + 1 == steps_;
    const auto due = [&](int64_t every) { return every > 0 && (step + 1) % every == 0; };
    const bool tested = recipe().evaluate && (last || due(evaluate_every));
    const bool evaluated = tested && test();
    // Asked to stop in the last step, a run that is complete ends as always.
    result_.stopped = last ? tested && !evaluated : asked_to_stop();
    pace.seconds = seconds_since(started);
    const bool saving = last || result_.stopped || due(save_every);
    record({.step = step + 1,
            .epoch = static_cast<double>(step + 1) / static_cast<double>(steps_per_epoch_),
            .loss = result_.losses.back(),
            .rate = last_rate_,
            .step_seconds = result_.seconds.back(),
            .run_seconds = pace.seconds,
            .loss_scale = scaler_.dynamic() ? scaler_.scale() : 0},
           evaluated, saving);
    if (saving && kept_on_disk) save();
    if (show) show(progress_at(pace, evaluated));
    if (show && !last && !result_.stopped && asked_to_stop()) {  // by whoever was shown it
      result_.stopped = true;
      if (!saving && kept_on_disk) save();
    }
    if (result_.stopped) break;
  }
  const double stepped = std::accumulate(result_.seconds.begin(), result_.seconds.end(), 0.0);
  if (stepped > 0) result_.tokens_per_second = static_cast<double>(pace.tokens) / stepped;
  if (pace.first >= steps_) result_.stopped = !test();
  summarize();
  return result_;
}

void Trainer::timed_step(int64_t step, Pace& pace) {
  const Clock::time_point before = Clock::now();
  const double communicated = ranks() == nullptr ? 0 : ranks()->seconds();
  this->step(step);
  result_.seconds.push_back(seconds_since(before));
  if (ranks() != nullptr) result_.communication += ranks()->seconds() - communicated;
  result_.steps = step + 1;
  const Bucket* const bucket = source_.bucket(step);
  const int64_t rows = bucket != nullptr ? bucket->rows : planned_.microbatches.batch;
  pace.rows += rows;
  const int64_t length = tokens_of_row(planned_.full().model);
  if (length > 0) pace.tokens += rows * (bucket != nullptr ? bucket->length : length);
}

Progress Trainer::progress_at(const Pace& pace, bool evaluated) const {
  const auto done = static_cast<double>(result_.steps - pace.first);
  Progress progress;
  progress.evaluated = evaluated;
  progress.stopped = result_.stopped;
  progress.step = result_.steps;
  progress.steps = steps_;
  progress.steps_per_epoch = steps_per_epoch_;
  progress.train = accumulated_.figures();
  progress.rate = last_rate_;
  progress.rows_per_second = static_cast<double>(pace.rows) / pace.seconds;
  progress.tokens_per_second = static_cast<double>(pace.tokens) / pace.seconds;
  progress.seconds_left = pace.seconds / done * static_cast<double>(steps_ - result_.steps);
  if (scaler_.dynamic()) progress.loss_scale = scaler_.scale();
  progress.skipped = scaler_.skipped();
  progress.arena = planned_.plan().arena;
  progress.budget = recipe().memory.value_or(Bytes());
  progress.microbatch = planned_.microbatches.count() > 1 ? planned_.microbatches.rows : 0;
  progress.tier = planned_.tier;
  progress.test = result_.test;
  return progress;
}

void Trainer::summarize() {
  result_.epochs = static_cast<double>(result_.steps) / static_cast<double>(steps_per_epoch_);
  result_.train = accumulated_.figures();
  // Where no step was left to run, nothing was touched: then it is the allocated size.
  result_.measured_arena = result_.seconds.empty() ? arena_->size() : step_->touched();
  for (const BoundStep& evaluator : evaluators_) {
    result_.measured_arena = std::max(result_.measured_arena, evaluator.program().touched());
    result_.evaluation_arena = std::max(result_.evaluation_arena, evaluator.plan().arena);
  }
  if (!result_.seconds.empty()) result_.not_met = step_->not_met();
  result_.arena_of_ranks = {result_.measured_arena};
  if (ranks() != nullptr) summarize_ranks();
  result_.beside_arena = planned_.backend().in_use_beside(arena_->size());
  result_.step_ms = 1000 * median(result_.seconds);
  if (scaler_.dynamic()) result_.loss_scale = scaler_.scale();
  result_.skipped = scaler_.skipped();
  result_.weights_sha256 = weights_sha256(program());
  if (reallocator_) {
    const ValueId threshold = program().graph().find(kSparseThreshold);
    result_.threshold = program().map_to_host(threshold, HostMapping::Use::read).as<double>()[0];
  }
}

void Trainer::summarize_ranks() {
  result_.ranks_over = ranks()->name();
  result_.arena_of_ranks.clear();
  for (const double bytes : gathered(*ranks(), static_cast<double>(result_.measured_arena.count))) {
    result_.arena_of_ranks.emplace_back(static_cast<int64_t>(bytes));
  }
  const double all = std::reduce(result_.seconds.begin(), result_.seconds.end());
  result_.communication = all > 0 ? result_.communication / all : 0;
  // The host does not see communication on the card: then as it was in the steps that were traced.
  if (result_.communication == 0 && traced_ > 0) {
    result_.communication = traced_with_ranks_ / traced_;
  }
}

void Trainer::export_weights(const std::string& path) {
  const Model& model = planned_.full().model;
  if (path.ends_with(".onnx")) return write_onnx(path, program(), model);
  save_weights(path, program(), names_outside(model));
}

void Trainer::export_adapters(const std::string& folder) {
  const Model& model = planned_.full().model;
  save_adapters(folder, program(), recipe().tuning.adapters, model.foreign, model.first_values);
}

}  // namespace thimble
