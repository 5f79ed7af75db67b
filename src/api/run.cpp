// Runs of the C functions: a trainer, its folder and its callbacks.
#include <algorithm>
#include <cstring>

#include "api/handles.h"
#include "base/host/release_pages.h"
#include "base/io/json.h"
#include "data/fingerprint.h"
#include "data/labelled_images.h"
#include "report/run_report.h"
#include "request/resume.h"
#include "train/feed/caller_batches.h"
#include "train/feed/feeder.h"
#include "train/predict.h"
#include "weights/merged_base.h"

namespace thimble::api {
namespace {

constexpr int64_t kEndless = int64_t{1} << 40;  // steps of an epoch that nobody has counted

// Callers compiled against an older header have fewer members; those they lack are 0.
thimble_run_options known_part(const thimble_run_options* options) {
  thimble_run_options known = {};
  if (options == nullptr) return known;
  user_check(options->size >= offsetof(thimble_run_options, context) && options->size <= 4096,
             "thimble_run_options.size is {}; set it to sizeof(thimble_run_options)",
             options->size);
  std::memcpy(&known, options, std::min(sizeof(known), options->size));
  return known;
}

int64_t fill_by(thimble_fill fill, void* context, const BatchToFill& wanted) {
  std::array<thimble_tensor, 64> fields;
  for (size_t i = 0; i < wanted.fields.size(); ++i) {
    const BatchField& field = wanted.fields[i];
    fields[i] = described(field.name->c_str(), field.type);
    fields[i].row_axis = field.row_axis;
    fields[i].limit = field.limit;
    fields[i].data = field.data;
  }
  thimble_batch batch = {.test = wanted.split == Split::test ? 1 : 0,
                         .step = wanted.step,
                         .batch = wanted.batch,
                         .first = wanted.first,
                         .rows = wanted.rows,
                         .field_count = static_cast<int32_t>(wanted.fields.size()),
                         .fields = fields.data(),
                         .filled = wanted.rows};
  call("fill", fill, context, &batch);
  user_check(batch.filled >= 0 && batch.filled <= batch.rows,
             "the callback 'fill' says it filled {} of {} rows", batch.filled, batch.rows);
  return batch.filled;
}

// Pixels of 0 to 255 about zero, where nobody says what they are like; as weights, they can be set.
std::vector<DataConstant> usual_constants(const Model& model) {
  std::vector<DataConstant> constants;
  for (const ValueId value : model.from_data) {
    const Value& wanted = model.graph[value];
    const float usual = wanted.name == kPixelMean ? 127.5f : 1 / 63.75f;
    if (wanted.name != kPixelMean && wanted.name != kPixelInverseDeviation) continue;
    constants.push_back(
        {wanted.name, std::vector<float>(static_cast<size_t>(wanted.type.elements()), usual)});
  }
  return constants;
}

CallerData caller_data(thimble_fill fill, void* context, const Model& model) {
  CallerData data;
  data.fill = [fill, context](const BatchToFill& batch) { return fill_by(fill, context, batch); };
  data.constants = usual_constants(model);
  return data;
}

std::unique_ptr<BatchSource> source_of(thimble_run& run) {
  const Planned& planned = *run.planned;
  const Recipe& recipe = planned.training.recipe;
  const thimble_run_options& asked = run.callbacks;
  if (asked.fill == nullptr) {
    user_check(planned.dataset != nullptr,
               "the run has no data: name a data set in the recipe (data = \"digits\"), plan with "
               "the model's usual one, or give a callback that fills batches");
    return std::make_unique<Feeder>(*planned.dataset, feed_options(recipe));
  }
  user_check(recipe.data.name.empty(),
             "the recipe names the data set '{}', and a callback fills batches; leave one out",
             recipe.data.name);
  user_check(recipe.tokens == 0 && recipe.lengths.empty() && !recipe.data.augment,
             "--tokens, --lengths and --augment are for data sets; a callback fills rows of one "
             "shape, as they are to be: leave them out");
  user_check(asked.steps_per_epoch >= 0, "an epoch of {} steps is none", asked.steps_per_epoch);
  CallerData data = caller_data(asked.fill, asked.context, planned.training.full().model);
  if (asked.prepare != nullptr) {
    data.prepare = [asked](int64_t step) { call("prepare", asked.prepare, asked.context, step); };
  }
  data.tests = asked.tests != 0;
  data.steps_per_epoch = asked.steps_per_epoch > 0 ? asked.steps_per_epoch : recipe.schedule.steps;
  run.endless = data.steps_per_epoch == 0;
  if (run.endless) {
    data.steps_per_epoch = kEndless;
    user_check(recipe.schedule.kind == RateSchedule::Kind::constant ||
                   recipe.schedule.kind == RateSchedule::Kind::inverse_sqrt,
               "nobody says how long the run is, and a {} schedule goes by that; choose --steps, "
               "steps_per_epoch of the data, or --schedule constant",
               name_of(recipe.schedule.kind));
  }
  return std::make_unique<CallerBatches>(std::move(data));
}

TrainOptions options_of(thimble_run& run, const thimble_run_options& asked) {
  TrainOptions options;
  if (asked.out != nullptr && *asked.out != '\0') {
    run.folder.emplace(asked.out);
    options.out = run.folder->path();
    const auto resume = asked.resume == THIMBLE_START    ? Resume::never
                        : asked.resume == THIMBLE_RESUME ? Resume::latest
                                                         : Resume::or_start;
    options.resume = goes_on(resume, asked.overwrite != 0, options.out);
  }
  user_check(asked.resume == THIMBLE_START || run.folder,
             "--resume continues a run that has a folder; say which with --out");
  if (asked.weights != nullptr) options.weights = asked.weights;
  user_check(asked.optimizer_steps >= 0 && asked.optimizer_steps <= kEndless,
             "an optimizer that made {} steps before is none", asked.optimizer_steps);
  options.optimizer_steps = asked.optimizer_steps;
  if (asked.give != nullptr) {
    options.first_values = [asked](const std::string& name, int64_t begin,
                                   std::span<std::byte> out) {
      call("give", asked.give, asked.context, name.c_str(), begin, std::ssize(out),
           static_cast<void*>(out.data()));
    };
  }
  options.stop = [&run] { return run.stop.load(); };
  options.rate = [&run](int64_t step, double rate) {
    if (run.rate >= 0) rate = run.rate;
    const thimble_run_options& callbacks = run.callbacks;
    if (callbacks.rate != nullptr) call("rate", callbacks.rate, callbacks.context, step, &rate);
    return rate;
  };
  const Planned& planned = *run.planned;
  if (asked.fill == nullptr && planned.dataset) {
    options.fingerprint = fingerprint_of(planned.dataset->info());
  } else {
    options.fingerprint = {{"set", "a callback's"},
                           {"fields", to_string(fields_read(planned.training.full().model))}};
  }
  return options;
}

thimble_figures figures_of(const Figures& figures, const thimble_run& run,
                           std::vector<thimble_metric>& room) {
  const Model& model = run.planned->training.full().model;
  room.clear();
  for (size_t m = 0; m < figures.metrics.size(); ++m) {
    room.push_back({model.metrics[m].name.c_str(), figures.metrics[m].value});
  }
  return {.steps = run.trainer->done(),
          .loss = figures.loss,
          .rate = run.trainer->rate(),
          .metric_count = static_cast<int32_t>(room.size()),
          .metrics = room.data()};
}

[[noreturn]] void stopped(thimble_run& run) {
  run.stop = false;
  throw Stopped{
      fmt::format("stopped after step {} of {}", run.trainer->done(), run.trainer->steps())};
}

void show_progress(thimble_run& run, const Progress& p, thimble_show show, void* context) {
  thimble_progress progress = {.step = p.step,
                               .steps = p.steps,
                               .steps_per_epoch = p.steps_per_epoch,
                               .rate = p.rate,
                               .rows_per_second = p.rows_per_second,
                               .seconds_left = p.seconds_left,
                               .train = figures_of(p.train, run, run.metrics),
                               .tested = p.evaluated ? 1 : 0,
                               .test = figures_of(p.test, run, run.test_metrics)};
  progress.train.steps = progress.test.steps = p.step;
  if (show(context, &progress) != 0) run.stop = true;
}

const AdapterSpec& check_adapted(const thimble_run& run) {
  const AdapterSpec& spec = run.planned->training.recipe.tuning.adapters;
  user_check(spec.enabled(), "the run trained no adapters; export its weights, or choose --lora");
  return spec;
}

}  // namespace
}  // namespace thimble::api

using namespace thimble;
using namespace thimble::api;

thimble_code thimble_run_new(const thimble_plan* plan, const thimble_run_options* options,
                             thimble_run** run) {
  return guarded([&] {
    given(run, "run") = nullptr;
    auto made = std::make_unique<thimble_run>();
    made->planned = given(plan, "plan").planned;
    const thimble_run_options asked = known_part(options);
    made->callbacks = asked;
    made->callbacks.out = made->callbacks.weights = nullptr;
    made->source = source_of(*made);
    TrainOptions training = options_of(*made, asked);
    made->trainer =
        std::make_unique<Trainer>(made->planned->training, *made->source, std::move(training));
    const Model& model = made->planned->training.full().model;
    made->weights = outside_tensors(model.graph, names_outside(model));
    *run = made.release();
  });
}

void thimble_run_free(thimble_run* run) { delete run; }

thimble_code thimble_run_step(thimble_run* run, thimble_figures* figures) {
  return guarded([&] {
    const Figures step = given(run, "run").trainer->advance();
    if (figures != nullptr) *figures = figures_of(step, *run, run->metrics);
  });
}

thimble_code thimble_run_train(thimble_run* run, thimble_show show, void* context) {
  return guarded([&] {
    Trainer& trainer = *given(run, "run").trainer;
    user_check(!run->endless, "nobody says how many steps the run has; choose --steps");
    const TrainResult result = trainer.run([&](const Progress& p) {
      if (show != nullptr) show_progress(*run, p, show, context);
    });
    run->result = json_text(summary_of(run->planned->training, result));
    if (result.stopped) stopped(*run);
    run->stop = false;
  });
}

const char* thimble_run_result(thimble_run* run) {
  return run == nullptr ? "" : run->result.c_str();
}

thimble_code thimble_run_evaluate(thimble_run* run, thimble_fill fill, void* context,
                                  thimble_figures* figures) {
  return guarded([&] {
    Trainer& trainer = *given(run, "run").trainer;
    const BatchSource* source = run->source.get();
    std::unique_ptr<CallerBatches> others;
    if (fill != nullptr) {
      CallerData data = caller_data(fill, context, run->planned->training.full().model);
      data.tests = true;
      others = std::make_unique<CallerBatches>(std::move(data));
      source = others.get();
    }
    int64_t count = 0;
    const std::optional<Figures> tested = trainer.evaluate(*source, &count);
    if (!tested) stopped(*run);
    user_check(count > 0, "there are no records to test on");
    if (figures == nullptr) return;
    *figures = figures_of(*tested, *run, run->test_metrics);
    figures->records = count;
  });
}

thimble_code thimble_run_predict(thimble_run* run, thimble_fill fill, thimble_take take,
                                 void* context) {
  return guarded([&] {
    Trainer& trainer = *given(run, "run").trainer;
    user_check(fill != nullptr && take != nullptr, "predictions need the callbacks fill and take");
    CallerData data = caller_data(fill, context, run->planned->training.full().model);
    const std::vector<bool> read = fields_predicted_from(trainer.evaluator().model());
    data.fill = [fill, context, &read](BatchToFill batch) {
      std::vector<BatchField> fields(batch.fields.begin(), batch.fields.end());
      for (size_t i = 0; i < fields.size(); ++i) {
        if (read[i]) continue;
        std::memset(fields[i].data, 0, static_cast<size_t>(fields[i].type.bytes().count));
        fields[i].data = nullptr;
      }
      batch.fields = fields;
      return fill_by(fill, context, batch);
    };
    data.tests = true;
    const CallerBatches records(std::move(data));
    const uint64_t seed = run->planned->training.recipe.seed;
    predict(trainer.evaluator(), records, seed, [&](const Predicted& predicted) {
      thimble_tensor output = described(predicted.output->name.c_str(), predicted.type);
      output.data = const_cast<std::byte*>(predicted.bytes.data());
      call("take", take, context, &output, predicted.rows);
    });
  });
}

thimble_code thimble_run_set_rate(thimble_run* run, double rate) {
  return guarded([&] {
    user_check(rate == rate && rate < 1e30, "a learning rate of {} is none", rate);
    given(run, "run").rate = rate;
  });
}

void thimble_run_stop(thimble_run* run) {
  if (run != nullptr) run->stop = true;
}

int64_t thimble_run_done(const thimble_run* run) {
  return run == nullptr ? 0 : run->trainer->done();
}
int64_t thimble_run_steps(const thimble_run* run) {
  return run == nullptr || run->endless ? 0 : run->trainer->steps();
}

thimble_code thimble_run_rest(thimble_run* run) {
  return guarded([&] {
    if (given(run, "run").planned->training.backend().has_device_memory()) return;
    Program& program = run->trainer->program();
    const HostMapping free = program.map_free_between_steps(program.free_between_steps());
    release_pages(free.bytes());
  });
}

thimble_code thimble_run_save(thimble_run* run, const char** folder) {
  return guarded([&] {
    user_check(given(run, "run").folder.has_value(),
               "the run has no folder for checkpoints; say which with --out");
    run->checkpoint = run->trainer->save();
    if (folder != nullptr) *folder = run->checkpoint.c_str();
  });
}

thimble_code thimble_run_export(thimble_run* run, const char* path) {
  return guarded([&] { given(run, "run").trainer->export_weights(&given(path, "path")); });
}

thimble_code thimble_run_export_adapters(thimble_run* run, const char* folder) {
  return guarded([&] {
    check_adapted(given(run, "run"));
    run->trainer->export_adapters(&given(folder, "folder"));
  });
}

thimble_code thimble_run_export_merged(thimble_run* run, const char* folder) {
  return guarded([&] {
    const AdapterSpec& spec = check_adapted(given(run, "run"));
    user_check(run->folder.has_value(),
               "the run has no folder for checkpoints; say which with --out");
    run->checkpoint = run->trainer->save();
    const Model& model = run->planned->training.full().model;
    merge_adapters(adapted_base(model, spec, run->checkpoint, run->folder->path()),
                   &given(folder, "folder"));
  });
}
