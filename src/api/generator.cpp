// Generators of the C functions: a text continued token by token.
#include <cmath>
#include <cstring>

#include "api/handles.h"
#include "recipe/settings.h"
#include "request/memory_limit.h"

namespace thimble::api {
namespace {

// Callers compiled against an older header have fewer members; those they lack are 0.
template <class Options>
Options known_part(const Options* options, const char* name) {
  Options known = {};
  if (options == nullptr) return known;
  user_check(options->size >= sizeof(size_t) && options->size <= 4096,
             "{}.size is {}; set it to sizeof({})", name, options->size, name);
  std::memcpy(&known, options, std::min(sizeof(known), options->size));
  return known;
}

PlannedGeneration plan_or_throw(const Recipe& recipe, const TextGeneration& asked) {
  check(recipe);
  Request request = {.recipe = recipe};
  auto machine = Machine::open(recipe);
  resolve_budget(request, machine->backend());
  auto planned = plan_text_generation(request.recipe, std::move(machine), asked);
  if (const auto* none = std::get_if<Infeasible>(&planned)) {
    throw NoFit{none->why, none->min_bytes};
  }
  return std::get<PlannedGeneration>(std::move(planned));
}

std::vector<int32_t> text_of(const int32_t* tokens, int64_t count) {
  user_check(count >= 0 && count <= INT32_MAX, "a text of {} tokens is none", count);
  if (count == 0) return {};
  given(tokens, "tokens");
  return {tokens, tokens + count};
}

SampleOptions sampling_of(const thimble_sampling* given_options) {
  const thimble_sampling asked = known_part(given_options, "thimble_sampling");
  user_check(asked.temperature >= 0 && std::isfinite(asked.temperature),
             "a temperature is 0 or more, not {}", asked.temperature);
  user_check(asked.top_p >= 0 && asked.top_p <= 1, "top_p lies between 0 and 1, not {}",
             asked.top_p);
  user_check(asked.top_k >= 0, "top_k is 0 or more, not {}", asked.top_k);
  return {.temperature = asked.temperature,
          .top_k = asked.top_k,
          .top_p = asked.top_p == 0 ? 1 : asked.top_p,
          .seed = asked.seed,
          .stop = text_of(asked.stop, asked.stop_count)};
}

}  // namespace
}  // namespace thimble::api

using namespace thimble;
using namespace thimble::api;

thimble_code thimble_generator_new(const char* from, const thimble_generator_options* options,
                                   thimble_generator** generator) {
  return guarded([&] {
    given(generator, "generator") = nullptr;
    TextModel model = text_model(&given(from, "from"));
    const thimble_generator_options asked = known_part(options, "thimble_generator_options");
    if (asked.settings != nullptr) configure(model.recipe, parse_settings(asked.settings));
    user_check(asked.context >= 0, "a context of {} tokens is none", asked.context);
    user_check(asked.cache >= THIMBLE_CACHE_AUTOMATIC && asked.cache <= THIMBLE_CACHE_OFF,
               "a cache of {} is none; see thimble_cache", static_cast<int>(asked.cache));
    const TextGeneration how = {asked.context, static_cast<KvCache>(asked.cache)};
    auto made = std::make_unique<thimble_generator>(plan_or_throw(model.recipe, how));
    const std::string file = asked.weights == nullptr ? "" : asked.weights;
    const std::string converted = made->sampler.load({model.checkpoint, file});
    made->note = made->sampler.planned().note;
    if (!converted.empty()) {
      made->note += fmt::format("{}{}: {}", made->note.empty() ? "" : "\n", file, converted);
    }
    *generator = made.release();
  });
}

void thimble_generator_free(thimble_generator* generator) { delete generator; }

int64_t thimble_generator_bytes(const thimble_generator* generator) {
  return generator == nullptr ? 0 : generator->sampler.planned().plan().arena.count;
}
int64_t thimble_generator_cache_bytes(const thimble_generator* generator) {
  return generator == nullptr ? 0 : generator->sampler.planned().cache.count;
}
const char* thimble_generator_note(const thimble_generator* generator) {
  return generator == nullptr ? "" : generator->note.c_str();
}
int64_t thimble_generator_context(const thimble_generator* generator) {
  return generator == nullptr ? 0 : generator->sampler.planned().context;
}
int64_t thimble_generator_vocabulary(const thimble_generator* generator) {
  return generator == nullptr ? 0 : generator->sampler.vocabulary();
}
int64_t thimble_generator_held(const thimble_generator* generator) {
  return generator == nullptr ? 0 : generator->sampler.held();
}
int64_t thimble_generator_computed(const thimble_generator* generator) {
  return generator == nullptr ? 0 : generator->sampler.computed();
}

thimble_code thimble_generator_begin(thimble_generator* generator, const int32_t* tokens,
                                     int64_t count, const thimble_sampling* sampling) {
  return guarded([&] {
    thimble_generator& own = given(generator, "generator");
    own.sampler.begin(text_of(tokens, count), sampling_of(sampling));
    own.begun = true;
  });
}

thimble_code thimble_generator_next(thimble_generator* generator, int32_t* token) {
  return guarded([&] {
    thimble_generator& own = given(generator, "generator");
    user_check(own.begun, "there is no text to continue; call thimble_generator_begin() first");
    given(token, "token") = own.sampler.make_token().value_or(-1);
  });
}

thimble_code thimble_generator_logits(thimble_generator* generator, const int32_t* tokens,
                                      int64_t count, float* logits, int64_t bytes) {
  return guarded([&] {
    thimble_generator& own = given(generator, "generator");
    const int64_t all = own.sampler.vocabulary() * static_cast<int64_t>(sizeof(float));
    user_check(bytes == all, "the logits of {} tokens are {} bytes, not {}",
               own.sampler.vocabulary(), all, bytes);
    const std::span<const float> made = own.sampler.next(text_of(tokens, count));
    std::memcpy(&given(logits, "logits"), made.data(), made.size_bytes());
  });
}

void thimble_generator_forget(thimble_generator* generator) {
  if (generator != nullptr) generator->sampler.forget();
}
