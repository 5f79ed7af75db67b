#include "generate/translator.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "text/vocabulary.h"

namespace thimble {
namespace {

// A translation may be so much longer than what it is one of.
int64_t longest_translation(int64_t source) { return 2 * source + 10; }

const Output& logits_output(const Model& model) {
  const auto found = std::ranges::find(model.outputs, "logits", &Output::name);
  const auto has = [&](const char* field) {
    return std::ranges::find(model.feeds, field, &Feed::field) != model.feeds.end();
  };
  user_check(found != model.outputs.end() && model.query_positions.valid() && has("source") &&
                 has("source_length") && has("target_in"),
             "{} does not translate; choose a model that is trained on --data pairs",
             model.options.name);
  return *found;
}

std::span<int32_t> numbers(Program& program, const Model& model, const char* field) {
  return program.view<int32_t>(model.feed(field).value);
}

}  // namespace

Translator::Translator(TrainedModel& trained, const BeamOptions& options)
    : trained_(trained), options_(options) {
  variants_ = plan_generation(trained.planned(), options.beam);
  std::ranges::sort(variants_, {}, [](const auto& variant) { return variant->shape.length; });
  for (const auto& variant : variants_) {
    logits_output(variant->model);
    bound_.push_back(trained.bind(*variant));
  }
}

int64_t Translator::longest() const { return bound_.back().variant().shape.length; }

BoundStep& Translator::variant_for(int64_t source, int64_t& most) {
  most = std::min(longest(), longest_translation(source));
  const int64_t room = std::max(source, most);
  for (BoundStep& variant : bound_) {
    if (variant.variant().shape.length >= room) return variant;
  }
  internal_check(false, "a sentence that is too long should have been refused");
  return bound_.back();
}

BoundStep& Translator::variant_for(std::span<const std::vector<int32_t>> sentences,
                                   std::span<const Task> tasks) {
  int64_t length = 0;
  for (const Task& task : tasks) {
    if (task.beam.done()) continue;
    length = std::max(
        {length, std::ssize(sentences[task.sentence]), std::ssize(task.beam.beginning(0))});
  }
  const int64_t rows = std::ssize(tasks) * options_.beam;
  return *std::ranges::find_if(bound_, [&](const BoundStep& one) {
    return one.variant().shape.length >= length && one.variant().shape.rows >= rows;
  });
}

void Translator::run_batch(std::span<const std::vector<int32_t>> sentences,
                           std::vector<Task>& tasks) {
  while (!std::ranges::all_of(tasks, [](const Task& task) { return task.beam.done(); })) {
    advance(variant_for(sentences, tasks), sentences, tasks);
  }
}

// By a token.
void Translator::advance(BoundStep& variant, std::span<const std::vector<int32_t>> sentences,
                         std::span<Task> tasks) {
  Program& program = variant.program();
  const Model& model = variant.model();
  const auto rows = static_cast<size_t>(variant.variant().shape.rows);
  const auto length = static_cast<size_t>(variant.variant().shape.length);
  const Value& logits = model.graph[logits_output(model).value];
  const auto vocabulary = static_cast<size_t>(logits.type.shape.back());
  logits_.resize(rows * vocabulary);
  const auto width = static_cast<size_t>(options_.beam);
  // A step may have overwritten what it read.
  variant.set_own_constants(trained_.seed());
  const std::span<int32_t> source = numbers(program, model, "source");
  const std::span<int32_t> lengths = numbers(program, model, "source_length");
  const std::span<int32_t> target = numbers(program, model, "target_in");
  const std::span<int32_t> asked = program.view<int32_t>(model.query_positions);
  std::ranges::fill(source, kPadToken);
  std::ranges::fill(target, kPadToken);
  std::ranges::fill(lengths, 1);
  for (size_t row = 0; row < rows; ++row) asked[row] = static_cast<int32_t>(row * length);
  for (size_t t = 0; t < tasks.size(); ++t) {
    const std::vector<int32_t>& sentence = sentences[tasks[t].sentence];
    for (size_t i = 0; i < tasks[t].beam.count() && !tasks[t].beam.done(); ++i) {
      const size_t row = t * width + i;
      const std::span<const int32_t> begun = tasks[t].beam.beginning(i);
      std::ranges::copy(sentence, source.begin() + static_cast<ptrdiff_t>(row * length));
      std::ranges::copy(begun, target.begin() + static_cast<ptrdiff_t>(row * length));
      lengths[row] = static_cast<int32_t>(sentence.size());
      asked[row] += static_cast<int32_t>(begun.size() - 1);
    }
  }
  program.run();
  with_float_type(logits.type.dtype, [&]<class T>(TypeTag<T>) {
    const std::span<T> made = program.view<T>(logits_output(model).value);
    for (size_t i = 0; i < logits_.size(); ++i) logits_[i] = static_cast<float>(made[i]);
  });
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].beam.done()) continue;
    tasks[t].beam.advance([&](size_t i) {
      return std::span<const float>(logits_).subspan((t * width + i) * vocabulary, vocabulary);
    });
  }
}

std::vector<std::vector<int32_t>> Translator::translate(
    std::span<const std::vector<int32_t>> sentences,
    const std::function<void(size_t done)>& progress) {
  std::vector<size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return sentences[i].size(); });
  std::vector<std::vector<int32_t>> translations(sentences.size());
  for (size_t at = 0; at < order.size();) {
    int64_t most = 0;
    BoundStep& variant = variant_for(std::ssize(sentences[order[at]]), most);
    const auto room = static_cast<size_t>(variant.variant().shape.rows / options_.beam);
    std::vector<Task> tasks;
    for (; at < order.size() && tasks.size() < room; ++at) {
      if (&variant_for(std::ssize(sentences[order[at]]), most) != &variant) break;
      tasks.push_back({order[at], Beam(options_, most)});
    }
    run_batch(sentences, tasks);
    for (const Task& task : tasks) translations[task.sentence] = task.beam.best();
    if (progress) progress(at);
  }
  return translations;
}

}  // namespace thimble
