// Thimble for C++: thin classes over the C functions of thimble/thimble.h, which say what each
// means. Failures are exceptions with the same sentences; what a callback throws comes out as it
// is.
//
//   thimble::Recipe recipe("wrn-16-2");
//   recipe.set("batch", "100").set("memory", "100MiB");
//   thimble::Plan plan(recipe);                        // every byte, before anything runs
//   thimble::Run run(plan, {.fill = my_batches});
//   while (run.done() < 100) std::printf("%f\n", run.step().loss);
#ifndef THIMBLE_THIMBLE_HPP
#define THIMBLE_THIMBLE_HPP

#include <thimble/thimble.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace thimble {

class Error : public std::runtime_error {
 public:
  Error(thimble_code code, const char* sentence) : std::runtime_error(sentence), code_(code) {}
  thimble_code code() const { return code_; }

 private:
  thimble_code code_;
};

// No plan fits the budget.
class DoesNotFit : public Error {
 public:
  DoesNotFit(const char* sentence, int64_t needed)
      : Error(THIMBLE_NO_FIT, sentence), needed_(needed) {}
  int64_t needed() const { return needed_; }  // bytes that would do

 private:
  int64_t needed_;
};

inline void check(thimble_code code) {
  if (code == THIMBLE_OK) return;
  if (code == THIMBLE_NO_FIT) throw DoesNotFit(thimble_last_error(), thimble_last_needed());
  throw Error(code, thimble_last_error());
}

class Recipe {
 public:
  explicit Recipe(const char* model = nullptr) {
    thimble_recipe* made = nullptr;
    check(thimble_recipe_new(model, &made));
    handle_.reset(made);
  }
  // A setting by its name, as it is typed: ("memory", "100MiB").
  Recipe& set(const std::string& name, const std::string& value) {
    check(thimble_recipe_set(handle_.get(), name.c_str(), value.c_str()));
    return *this;
  }
  // TOML, or a JSON object.
  Recipe& read(const std::string& text) {
    check(thimble_recipe_read(handle_.get(), text.c_str()));
    return *this;
  }
  // Of a run that goes on in that folder: keeps what its budget chose when it began.
  Recipe& resume(const std::string& out) {
    check(thimble_recipe_resume(handle_.get(), out.c_str()));
    return *this;
  }
  const thimble_recipe* get() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(thimble_recipe* handle) const { thimble_recipe_free(handle); }
  };
  std::unique_ptr<thimble_recipe, Free> handle_;
};

enum class Data { own, of_recipe };  // batches of the caller's, or a data set

class Plan {
 public:
  explicit Plan(const Recipe& recipe, Data data = Data::own) {
    thimble_plan* made = nullptr;
    check(thimble_plan_new(recipe.get(), data == Data::of_recipe, &made));
    handle_.reset(made);
  }
  int64_t bytes() const { return thimble_plan_bytes(get()); }
  double step_ms() const { return thimble_plan_step_ms(get()); }
  std::string tier() const { return thimble_plan_tier(get()); }
  std::string json() const { return thimble_plan_json(get()); }
  std::string recipe() const { return thimble_plan_recipe(get()); }
  void save(const std::string& path) const { check(thimble_plan_save(get(), path.c_str())); }
  std::vector<thimble_tensor> fields() const {
    std::vector<thimble_tensor> fields(static_cast<size_t>(thimble_plan_field_count(get())));
    for (size_t i = 0; i < fields.size(); ++i) {
      check(thimble_plan_field(get(), static_cast<int32_t>(i), &fields[i]));
    }
    return fields;
  }
  const thimble_plan* get() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(thimble_plan* handle) const { thimble_plan_free(handle); }
  };
  std::unique_ptr<thimble_plan, Free> handle_;
};

// A field of a batch, or a weight, as its elements.
template <class T>
std::span<T> elements(const thimble_tensor& tensor) {
  return {static_cast<T*>(tensor.data), static_cast<size_t>(tensor.bytes) / sizeof(T)};
}

struct RunOptions {
  std::function<void(thimble_batch& batch)> fill = {};  // none: the plan's data set
  std::function<void(int64_t step)> prepare = {};
  std::function<double(int64_t step, double scheduled)> rate = {};
  int64_t steps_per_epoch = 0;
  bool tests = false;
  int64_t optimizer_steps = 0;
  std::string out = {};
  thimble_resume resume = THIMBLE_START;
  bool overwrite = false;
  std::string weights = {};
};

struct Figures {
  double loss = 0;
  int64_t steps = 0;
  int64_t records = 0;
  std::vector<std::pair<std::string, double>> metrics;

  // 0 where there is none of that name.
  double operator[](std::string_view metric) const {
    for (const auto& [name, value] : metrics) {
      if (name == metric) return value;
    }
    return 0;
  }
};

class Run {
 public:
  explicit Run(const Plan& plan, RunOptions options = {})
      : state_(std::make_unique<State>(State{std::move(options), nullptr})) {
    const RunOptions& asked = state_->options;
    thimble_run_options plain = {};
    plain.size = sizeof(plain);
    if (!asked.out.empty()) plain.out = asked.out.c_str();
    plain.resume = asked.resume;
    plain.overwrite = asked.overwrite;
    if (!asked.weights.empty()) plain.weights = asked.weights.c_str();
    plain.context = state_.get();
    if (asked.fill) plain.fill = &Run::on_fill;
    if (asked.prepare) plain.prepare = &Run::on_prepare;
    if (asked.rate) plain.rate = &Run::on_rate;
    plain.steps_per_epoch = asked.steps_per_epoch;
    plain.tests = asked.tests;
    plain.optimizer_steps = asked.optimizer_steps;
    thimble_run* made = nullptr;
    finish(thimble_run_new(plan.get(), &plain, &made));
    handle_.reset(made);
  }

  Figures step() {
    thimble_figures figures = {};
    finish(thimble_run_step(get(), &figures));
    return copied(figures);
  }
  // `show` returns whether to stop.
  void train(std::function<bool(const thimble_progress&)> show = {}) {
    state_->show = std::move(show);
    finish(thimble_run_train(get(), state_->show ? &Run::on_show : nullptr, state_.get()));
  }
  Figures evaluate() {
    thimble_figures figures = {};
    finish(thimble_run_evaluate(get(), nullptr, nullptr, &figures));
    return copied(figures);
  }
  void set_rate(double rate) { check(thimble_run_set_rate(get(), rate)); }
  void stop() { thimble_run_stop(get()); }  // from any thread
  int64_t done() const { return thimble_run_done(get()); }
  int64_t steps() const { return thimble_run_steps(get()); }
  std::string result() const { return thimble_run_result(get()); }  // JSON
  std::string save() {
    const char* folder = nullptr;
    finish(thimble_run_save(get(), &folder));
    return folder;
  }
  void export_weights(const std::string& path) { check(thimble_run_export(get(), path.c_str())); }

  std::vector<thimble_tensor> weights() {
    std::vector<thimble_tensor> all(static_cast<size_t>(thimble_run_weight_count(get())));
    for (size_t i = 0; i < all.size(); ++i) {
      check(thimble_run_weight(get(), static_cast<int32_t>(i), &all[i]));
    }
    return all;
  }
  // REQUIRES: T is the weight's type. UserError unless the size is its own.
  template <class T>
  void read(const std::string& name, std::span<T> to) {
    check(thimble_run_read_weight(get(), find(name), to.data(),
                                  static_cast<int64_t>(to.size_bytes())));
  }
  template <class T>
  void write(const std::string& name, std::span<const T> from) {
    check(thimble_run_write_weight(get(), find(name), from.data(),
                                   static_cast<int64_t>(from.size_bytes())));
  }
  // Optimizer state of a weight, by the state's name ("momentum").
  bool has_state(const std::string& name, const std::string& state) const {
    return thimble_run_has_state(get(), find(name), state.c_str()) != 0;
  }
  void read_state(const std::string& name, const std::string& state, std::span<float> to) {
    check(thimble_run_read_state(get(), find(name), state.c_str(), to.data(),
                                 static_cast<int64_t>(to.size_bytes())));
  }
  void write_state(const std::string& name, const std::string& state, std::span<const float> from) {
    check(thimble_run_write_state(get(), find(name), state.c_str(), from.data(),
                                  static_cast<int64_t>(from.size_bytes())));
  }
  thimble_run* get() const { return handle_.get(); }

 private:
  struct State {
    RunOptions options;
    std::exception_ptr failed;
    std::function<bool(const thimble_progress&)> show = {};
  };
  struct Free {
    void operator()(thimble_run* handle) const { thimble_run_free(handle); }
  };

  // No exception may pass through the library: it waits until the call is over.
  template <class Body>
  static int32_t guarded(void* context, const Body& body) {
    State& state = *static_cast<State*>(context);
    try {
      return body(state) ? 1 : 0;
    } catch (...) {
      state.failed = std::current_exception();
      return 1;
    }
  }
  static int32_t on_fill(void* context, thimble_batch* batch) {
    return guarded(context, [&](State& state) { return state.options.fill(*batch), false; });
  }
  static int32_t on_prepare(void* context, int64_t step) {
    return guarded(context, [&](State& state) { return state.options.prepare(step), false; });
  }
  static int32_t on_rate(void* context, int64_t step, double* rate) {
    return guarded(context,
                   [&](State& state) { return *rate = state.options.rate(step, *rate), false; });
  }
  static int32_t on_show(void* context, const thimble_progress* progress) {
    return guarded(context, [&](State& state) { return state.show(*progress); });
  }

  void finish(thimble_code code) {
    if (code != THIMBLE_OK && state_->failed) {
      std::rethrow_exception(std::exchange(state_->failed, nullptr));
    }
    check(code);
  }
  int32_t find(const std::string& name) const {
    int32_t index = 0;
    check(thimble_run_find_weight(get(), name.c_str(), &index));
    return index;
  }
  static Figures copied(const thimble_figures& figures) {
    Figures result = {figures.loss, figures.steps, figures.records, {}};
    for (int32_t m = 0; m < figures.metric_count; ++m) {
      result.metrics.emplace_back(figures.metrics[m].name, figures.metrics[m].value);
    }
    return result;
  }

  std::unique_ptr<State> state_;
  std::unique_ptr<thimble_run, Free> handle_;
};

struct GeneratorOptions {
  std::string weights = {};
  std::string settings = {};
  int64_t context = 0;
  thimble_cache cache = THIMBLE_CACHE_AUTOMATIC;
};

struct Sampling {
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 0;
  std::vector<int32_t> stop = {};
};

class Generator {
 public:
  explicit Generator(const std::string& from, const GeneratorOptions& options = {}) {
    thimble_generator_options plain = {};
    plain.size = sizeof(plain);
    if (!options.weights.empty()) plain.weights = options.weights.c_str();
    if (!options.settings.empty()) plain.settings = options.settings.c_str();
    plain.context = options.context;
    plain.cache = options.cache;
    thimble_generator* made = nullptr;
    check(thimble_generator_new(from.c_str(), &plain, &made));
    handle_.reset(made);
  }
  int64_t bytes() const { return thimble_generator_bytes(get()); }
  int64_t cache_bytes() const { return thimble_generator_cache_bytes(get()); }
  std::string note() const { return thimble_generator_note(get()); }
  int64_t context() const { return thimble_generator_context(get()); }
  int64_t vocabulary() const { return thimble_generator_vocabulary(get()); }
  int64_t held() const { return thimble_generator_held(get()); }
  int64_t computed() const { return thimble_generator_computed(get()); }

  void begin(std::span<const int32_t> text, const Sampling& how = {}) {
    const thimble_sampling plain = {.size = sizeof(plain),
                                    .temperature = how.temperature,
                                    .top_k = how.top_k,
                                    .top_p = how.top_p,
                                    .seed = how.seed,
                                    .stop = how.stop.data(),
                                    .stop_count = static_cast<int64_t>(how.stop.size())};
    check(thimble_generator_begin(get(), text.data(), static_cast<int64_t>(text.size()), &plain));
  }
  // -1: a token of `stop` ended the text.
  int32_t next() {
    int32_t token = 0;
    check(thimble_generator_next(get(), &token));
    return token;
  }
  std::vector<float> logits(std::span<const int32_t> text) {
    std::vector<float> made(static_cast<size_t>(vocabulary()));
    check(thimble_generator_logits(get(), text.data(), static_cast<int64_t>(text.size()),
                                   made.data(), static_cast<int64_t>(made.size() * sizeof(float))));
    return made;
  }
  void forget() { thimble_generator_forget(get()); }
  thimble_generator* get() const { return handle_.get(); }

 private:
  struct Free {
    void operator()(thimble_generator* handle) const { thimble_generator_free(handle); }
  };
  std::unique_ptr<thimble_generator, Free> handle_;
};

}  // namespace thimble

#endif
