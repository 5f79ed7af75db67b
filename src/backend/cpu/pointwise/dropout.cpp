// dropout: one pass.
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/pointwise/random_words.h"
#include "backend/cpu/rows.h"

namespace thimble {
namespace {

// Groups of elements [begin, end).
THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t* rng = args.inputs[1].as<const int64_t>();
  const RandomStream random(rng, args.attrs->integer("stream"));
  const double drop = args.attrs->real("p");
  const auto p = static_cast<float>(drop), scale = static_cast<float>(1 / (1 - drop));
  const int64_t elements = args.outputs[0].elements();
  for (int64_t group = begin; group < end; ++group) {
    uint32_t words[kRandomGroup];
    random_words(random, group, words);
    const float* x = args.inputs[0].as<const float>() + group * kRandomGroup;
    float* y = args.outputs[0].as<float>() + group * kRandomGroup;
    const uint32_t* word = words;
    map_range(y, 0, std::min(kRandomGroup, elements - group * kRandomGroup), false,
              [=](int64_t i) { return uniform_of(word[i]) >= p ? x[i] * scale : 0; });
  }
}

std::unique_ptr<Kernel> make(const Signature& s) {
  const int64_t elements = s.inputs[0].elements(), cost = kRandomGroup * 8;
  if (can_stage(s) && elements % kRandomGroup == 0) {
    return std::make_unique<StagedLoop>(s, loop, elements / kRandomGroup, cost);
  }
  if (s.inputs[0].dtype != DType::f32 || elements == 0 || s.accumulate != 0) return nullptr;
  return std::make_unique<UnitKernel>((elements + kRandomGroup - 1) / kRandomGroup, cost, loop);
}

}  // namespace

extern const CpuKernel cpu_dropout{"dropout", make};

}  // namespace thimble
