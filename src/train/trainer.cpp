#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/finite.h"
#include "train/checkpoint.h"
#include "train/initialize.h"
#include "train/weights_file.h"
#include "transform/codec_json.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

nlohmann::json to_json(const SparsitySpec& spec, int64_t reallocate_every) {
  if (!spec.enabled()) return nullptr;
  return {{"density", spec.density},        {"weights", spec.weights},
          {"method", name_of(spec.method)}, {"threshold", spec.threshold},
          {"target", spec.target},          {"reallocate_every", reallocate_every}};
}

}  // namespace

// Running means of the current epoch.
struct Trainer::Meter {
  double loss_sum = 0;
  double correct_sum = 0;
  int64_t count = 0;  // steps in the sums
  Clock::time_point started = Clock::now();

  double loss() const { return count == 0 ? 0 : loss_sum / static_cast<double>(count); }
  double accuracy(int64_t batch) const {
    return count == 0 ? 0 : correct_sum / static_cast<double>(count * batch);
  }
  nlohmann::json to_json() const {
    return {{"loss_sum", loss_sum}, {"correct_sum", correct_sum}, {"count", count}};
  }
  // False when it is not what to_json() writes.
  bool from_json(const nlohmann::json& json) {
    for (const char* name : {"loss_sum", "correct_sum", "count"}) {
      if (!json.is_object() || !json.contains(name) || !json[name].is_number()) return false;
    }
    loss_sum = json["loss_sum"].get<double>();
    correct_sum = json["correct_sum"].get<double>();
    count = json["count"].get<int64_t>();
    return true;
  }
};

Trainer::Trainer(PlannedStepProgram& planned, Feeder& feeder, TrainOptions options)
    : planned_(planned),
      feeder_(feeder),
      options_(std::move(options)),
      meter_(std::make_unique<Meter>()),
      scaler_(options_.recipe.optimizer.scaling) {
  const int64_t batch = planned_.microbatches.batch;
  user_check(batch <= feeder_.train_count(), "a batch of {} is more than the {} training records",
             batch, feeder_.train_count());
  user_check(options_.steps >= 1, "there is nothing to train: {} steps", options_.steps);
  options_.rate.total_steps = options_.steps;
  evaluation_ = plan_evaluation(planned_);
  arena_ = planned_.backend->allocate(planned_.plan.arena);
  step_ = std::make_unique<TrainingStep>(planned_, feeder_, *arena_, options_.seed);
  evaluator_ = std::make_unique<Program>(evaluation_->model.graph, evaluation_->plan,
                                         *planned_.backend, *arena_);
  start();
  if (!options_.out.empty()) {  // when nothing else can be wrong
    ensure_directory(options_.out);
    remove_old_checkpoints(options_.out);
  }
}

Trainer::~Trainer() = default;

nlohmann::json Trainer::recipe_json() const {
  nlohmann::json json = settings_json();
  json.update(to_json(planned_.codec));
  return json;
}

nlohmann::json Trainer::settings_json() const {
  const ModelOptions& model = planned_.training->model.options;
  const OptimizerSpec& optimizer = options_.recipe.optimizer;
  return {{"model", model.name},
          {"batch", planned_.microbatches.batch},
          {"microbatch", planned_.microbatches.rows},
          {"image", std::vector<int64_t>(model.image.dims().begin(), model.image.dims().end())},
          {"classes", model.classes},
          {"layers", model.layers},
          {"hidden", model.hidden},
          {"length", model.length},
          {"dropout", model.dropout},
          {"norm", name_of(model.norm)},
          {"label_smoothing", model.label_smoothing},
          {"optimizer", name_of(optimizer)},
          {"fold", optimizer.fold},
          {"momentum", optimizer.momentum},
          {"weight_decay", optimizer.weight_decay},
          {"state_bits", optimizer.state_bits},
          {"clip_norm", optimizer.clip_norm},
          {"clip_two_pass", optimizer.clip_two_pass},
          {"sparsity", to_json(planned_.training->sparsity, options_.reallocate_every)},
          {"precision", name_of(model.storage)},
          {"master", model.master},
          {"rounding", name_of(optimizer.rounding)},
          {"loss_scale", name_of(optimizer.scaling)},
          {"lr", options_.rate.base},
          {"schedule", name_of(options_.rate.kind)},
          {"warmup_steps", options_.rate.warmup_steps},
          {"milestones", options_.rate.milestones},
          {"factor", options_.rate.factor},
          {"seed", options_.seed},
          {"data", options_.data}};
}

void Trainer::start() {
  const Model& model = planned_.training->model;
  initialize(program(), options_.seed);
  feeder_.describe(program(), model);
  if (!options_.weights.empty()) weights_note_ = load_weights(options_.weights, program());
  if (options_.resume) {
    const std::optional<std::string> folder = latest_checkpoint(options_.out);
    user_check(folder.has_value(), "there is no checkpoint in '{}' to resume from", options_.out);
    const Position position =
        load_checkpoint(*folder, program(), recipe_json(), options_.fingerprint);
    result_.resumed_at = position.step;
    result_.checkpoint = *folder;
    user_check(meter_->from_json(position.progress),
               "the checkpoint in '{}' is damaged: its progress is not what was saved", *folder);
    user_check(!scaler_.dynamic() ||
                   scaler_.from_json(position.progress.value("loss_scale", nlohmann::json())),
               "the checkpoint in '{}' is damaged: its loss scale is not what was saved", *folder);
    user_check(position.step <= options_.steps,
               "the checkpoint in '{}' is at step {}, beyond the {} steps asked for", *folder,
               position.step, options_.steps);
  }
  const SparsitySpec& sparsity = planned_.training->sparsity;
  if (sparsity.enabled() && sparsity.method != SparseMethod::fixed) {
    reallocator_ = std::make_unique<Reallocator>(program(), sparsity, options_.seed);
    reallocations_ =
        reallocation_schedule(options_.reallocate_every, steps_per_epoch(), options_.steps);
  }
  step_->end_before(options_.steps);
  if (options_.on_microbatch) step_->on_microbatch(options_.on_microbatch);
  // The check runs between the forward pass and the first update of a weight, so that a bad step
  // spoils nothing but running statistics (and momentum that gradients are folded into). A remote
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

std::string Trainer::non_finite_value(const std::function<bool(Role)>& looked_at) const {
  Program& program = step_->program();
  const Graph& graph = program.graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || !is_persistent(value.role) || !looked_at(value.role)) continue;
    const Loan loan = program.borrow(make_id<ValueId>(v), Loan::Use::read);
    if (!all_finite(loan.bytes(), value.type.dtype)) {
      return fmt::format("{} '{}'", name_of(value.role), value.name);
    }
  }
  return "";
}

// Runs the forward pass of the microbatch again, looking at every value as it is made.
void Trainer::explain_non_finite() {
  const MicrobatchId which = step_->current();
  const auto name_fault = [&](std::string_view where) {
    const bool scaled = options_.recipe.optimizer.scaling.kind == LossScaling::Kind::fixed;
    throw UserError(fmt::format(
        "the loss is not finite at step {}: {} is the first value that is not; {}; try {}a lower "
        "--lr, a warm-up (--warmup), or another --seed",
        which.step + 1, where, kept(),
        scaled ? "a lower --loss-scale (gradients may have overflowed) or a dynamic one, " : ""));
  };
  // Weights first: they are as the step before left them, or, on a remote device, as this one did.
  // Running statistics have seen this forward pass already, so they say nothing about where it went
  // wrong.
  const auto trained = [](Role role) { return role != Role::statistic; };
  if (const std::string value = non_finite_value(trained); !value.empty()) {
    name_fault(planned_.backend->remote() ? value + " (after its update)" : value);
  }
  TrainingStep::Part& part = step_->part_of(which.number);
  const Model& model = part.training->model;
  step_->feed(which, rate_at(options_.rate, which.step));
  part.program->run_until(part.program->calls_until(model.loss), [&](size_t s) {
    const PlannedCall& planned = part.plan->calls[s];
    const Node& node = model.graph[planned.node];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const DType dtype = model.graph[node.outputs[k]].type.dtype;
      const Loan loan = part.program->output_of(s, k);
      const bool finite = all_finite(loan.bytes(), dtype);
      if (!finite) name_fault(fmt::format("the output of '{}'", node.name));
    }
  });
  name_fault("the loss");
}

void Trainer::step(int64_t step) {
  if (scaler_.dynamic()) step_->set_loss_scale(scaler_.scale(), scaler_.skipped());
  step_->run(step, rate_at(options_.rate, step));
  scaler_.step_done(step_->overflowed());
  const double loss = static_cast<double>(step_->loss());
  result_.losses.push_back(loss);
  meter_->loss_sum += loss;
  meter_->correct_sum += static_cast<double>(step_->correct());
  ++meter_->count;
  if (reallocator_ && reallocations_.due(step + 1)) {
    reallocator_->run(step + 1);
    ++result_.reallocations;
  }
}

int64_t Trainer::steps_per_epoch() const {
  return std::max<int64_t>(1, feeder_.train_count() / planned_.microbatches.batch);
}

bool Trainer::evaluate() {
  if (!options_.evaluate) return true;
  const Model& model = evaluation_->model;
  // Training reuses the bytes of whatever only evaluation keeps (an LSTM's first state).
  const Graph& trained = program().graph();
  initialize(*evaluator_, options_.seed,
             [&](ValueId value) { return !trained.find(model.graph[value].name).valid(); });
  double loss_sum = 0;
  double correct = 0;
  const int64_t count = feeder_.test_count();
  for (int64_t first = 0; first < count;) {
    if (asked_to_stop()) return false;
    const int64_t rows = feeder_.fill_test(*evaluator_, model, first);
    evaluator_->run();
    loss_sum +=
        static_cast<double>(evaluator_->view<float>(model.loss)[0]) * static_cast<double>(rows);
    correct += static_cast<double>(evaluator_->view<float>(model.correct)[0]);
    first += rows;
  }
  result_.test_count = count;
  result_.test_loss = count == 0 ? 0 : loss_sum / static_cast<double>(count);
  result_.test_accuracy = count == 0 ? 0 : correct / static_cast<double>(count);
  return true;
}

void Trainer::save() {
  if (options_.out.empty()) return;
  // The loss does not know yet what the last update did.
  const std::string fault = non_finite_value([](Role) { return true; });
  user_check(fault.empty(),
             "{} is not finite after step {}, so nothing was saved; {}; try a lower --lr, a "
             "warm-up (--warmup), or another --seed",
             fault, result_.steps, kept());
  Position position;
  position.step = result_.steps;
  position.recipe = recipe_json();
  position.progress = meter_->to_json();
  position.data = options_.fingerprint;
  if (scaler_.dynamic()) position.progress["loss_scale"] = scaler_.to_json();
  result_.checkpoint = save_checkpoint(options_.out, program(), position);
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
  const int64_t batch = planned_.microbatches.batch;
  const int64_t per_epoch = steps_per_epoch();
  const int64_t first = result_.resumed_at;
  const size_t todo = static_cast<size_t>(options_.steps - first);
  result_.seconds.reserve(todo);
  result_.losses.reserve(todo);
  result_.steps = first;
  meter_->started = Clock::now();

  for (int64_t step = first; step < options_.steps; ++step) {
    if (step % per_epoch == 0) *meter_ = {.started = meter_->started};
    const Clock::time_point before = Clock::now();
    this->step(step);
    result_.seconds.push_back(seconds_since(before));
    result_.steps = step + 1;
    const bool last = step + 1 == options_.steps;
    const auto due = [&](int64_t every) { return every > 0 && (step + 1) % every == 0; };

    Progress progress;
    const bool tested = options_.evaluate && (last || due(options_.evaluate_every));
    progress.evaluated = tested && evaluate();
    // Asked to stop in the last step, a run that is complete ends as always.
    result_.stopped = last ? tested && !progress.evaluated : asked_to_stop();
    progress.stopped = result_.stopped;
    if (last || result_.stopped || due(options_.save_every)) save();

    const double elapsed = seconds_since(meter_->started);
    const double done = static_cast<double>(step + 1 - first);
    progress.step = step + 1;
    progress.steps = options_.steps;
    progress.steps_per_epoch = per_epoch;
    progress.loss = meter_->loss();
    progress.accuracy = meter_->accuracy(batch);
    progress.rate = rate_at(options_.rate, step);
    progress.rows_per_second = static_cast<double>(batch) * done / elapsed;
    progress.seconds_left = elapsed / done * static_cast<double>(options_.steps - step - 1);
    if (scaler_.dynamic()) progress.loss_scale = scaler_.scale();
    progress.skipped = scaler_.skipped();
    progress.arena = planned_.plan.arena;
    progress.test_loss = result_.test_loss;
    progress.test_accuracy = result_.test_accuracy;
    if (show) show(progress);
    if (result_.stopped) break;
  }
  if (first == options_.steps) result_.stopped = !evaluate();

  result_.epochs = static_cast<double>(result_.steps) / static_cast<double>(per_epoch);
  result_.train_loss = meter_->loss();
  result_.train_accuracy = meter_->accuracy(batch);
  // Where no step was left to run, nothing was touched: then it is what was allocated.
  result_.measured_arena =
      result_.seconds.empty() ? arena_->size() : std::max(step_->touched(), evaluator_->touched());
  result_.beside_arena = planned_.backend->in_use_beside(arena_->size());
  result_.evaluation_arena = evaluation_->plan.arena;
  result_.step_ms = 1000 * median(result_.seconds);
  if (scaler_.dynamic()) result_.loss_scale = scaler_.scale();
  result_.skipped = scaler_.skipped();
  result_.weights_sha256 = weights_sha256(program());
  if (reallocator_) {
    const ValueId threshold = program().graph().find(kSparseThreshold);
    result_.threshold = program().borrow(threshold, Loan::Use::read).as<double>()[0];
  }
  return result_;
}

void Trainer::export_weights(const std::string& path) { save_weights(path, program()); }

}  // namespace thimble
