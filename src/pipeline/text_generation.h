// Text generation: steps that continue one text, planned into an arena of their own. It holds the
// weights, and no gradients or optimizer state:
//
//   │ weights │ KV cache: keys and values of every layer │ activations of a step │
//   0                                                                        arena
//
// Each step computes a chunk of the text, whose keys and values it writes into the cache, and reads
// those of what came before. Without a cache, a step computes the whole text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pipeline/step.h"

namespace thimble {

enum class KvCache : uint8_t { automatic, on, off };  // automatic: where it fits the budget

struct TextGeneration {
  int64_t context =
      0;  // tokens of a text that the model sees at once; 0: the length of its records
  KvCache cache = KvCache::automatic;
};

struct PlannedGeneration {
  Recipe recipe;  // completed
  std::shared_ptr<Machine> machine;
  std::vector<std::unique_ptr<PlannedStep>> steps;  // of chunks, or of texts; the longest first
  int64_t context = 0;
  Bytes cache;       // of keys and values, in the arena; 0: there is none
  std::string note;  // why there is none, where it was left to choose; else empty

  Backend& backend() const { return machine->backend(); }
  const PlannedStep& full() const { return *steps.front(); }  // its arena is that of all
  const Plan& plan() const { return full().plan; }
};

// Within the recipe's budget, where it has one; where none fits, `why` is a whole sentence. Chunks
// become shorter until they fit. UserError where
// the model does not continue texts, or has fewer positions than the context. REQUIRES: the recipe
// was checked, and the machine was opened for it.
std::variant<PlannedGeneration, Infeasible> plan_text_generation(const Recipe& recipe,
                                                                 std::shared_ptr<Machine> machine,
                                                                 const TextGeneration& asked = {});

// The logits of a model that continues texts. UserError for any other.
ValueId logits_of_text(const Model& model);

}  // namespace thimble
