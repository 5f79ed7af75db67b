// Filters of raw audio: what they start as, and that they do.
#include "model/filterbank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "select/choose.h"
#include "weights/model_tensors.h"
#include "weights/weights_file.h"

namespace thimble {
namespace {

constexpr int64_t kFilters = 16, kSamples = 32;

// By filter.
std::vector<double> energies_in(const std::vector<double>& frame) {
  const std::vector<double> weights = fourier_filters(kFilters, kSamples);
  std::vector<double> energies(kFilters);
  for (size_t row = 0; row < 2 * kFilters; ++row) {
    double found = 0;
    for (size_t i = 0; i < kSamples; ++i) found += weights[row * kSamples + i] * frame[i];
    energies[row % kFilters] += found * found;
  }
  return energies;
}

TEST(Filterbank, ATonesEnergyIsThatOfItsFilterWhateverItsPhase) {
  for (const size_t filter : {2, 5, 11}) {
    std::vector<double> first;
    for (const double phase : {0.0, 0.7, 2.9}) {
      std::vector<double> tone;
      for (int64_t i = 0; i < kSamples; ++i) {
        const double turns = 0.5 * static_cast<double>(filter) / kFilters * static_cast<double>(i);
        tone.push_back(std::cos(2 * std::numbers::pi * turns + phase));
      }
      const std::vector<double> energies = energies_in(tone);
      EXPECT_EQ(std::ranges::max_element(energies) - energies.begin(), filter);
      if (first.empty()) first = energies;
      EXPECT_NEAR(energies[filter], first[filter], 1e-9 * first[filter]);
    }
  }
}

// Whole, in 16 bits, and where only some of its weights are kept, those.
TEST(Filterbank, ARunStartsWithIt) {
  const std::vector<double> wanted = fourier_filters(kFilters, kSamples);
  for (const double density : {1.0, 0.4}) {
    for (const DType storage : {DType::f32, DType::bf16}) {
      Recipe recipe;
      recipe.model.name = "lstm:layers=1,hidden=8,length=3,features=32,filters=16";
      recipe.model.batch = 2;
      recipe.model.storage = storage;
      recipe.optimizer = parse_optimizer("sgd");
      if (density < 1) recipe.sparsity.density = density;
      recipe.on.threads = 1;
      const auto planned = std::get<PlannedTraining>(plan_training(recipe));
      const std::unique_ptr<Memory> arena = planned.backend().allocate(planned.plan().arena);
      Program program(planned.graph(), planned.plan(), planned.backend(), *arena);
      set_first_values(program, planned.full().model, 1);
      size_t seen = 0, nonzeros = 0;
      for (const ModelTensor& tensor : model_tensors(planned.graph())) {
        if (planned.graph()[tensor.value].name != "filters.weight") continue;
        std::vector<std::byte> bytes(wanted.size() * static_cast<size_t>(size_of(storage)));
        read_model_tensor(program, tensor, 0, bytes);
        with_float_type(storage, [&]<class T>(TypeTag<T>) {
          for (size_t i = 0; i < wanted.size(); ++i) {
            T number;
            std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
            const auto got = static_cast<double>(number);
            if (tensor.packed && got == 0) continue;
            EXPECT_EQ(got, static_cast<double>(static_cast<T>(wanted[i])));
            nonzeros += got != 0 ? 1u : 0u;
          }
        });
        ++seen;
      }
      EXPECT_EQ(seen, 1u);
      EXPECT_GT(nonzeros, wanted.size() / 4);
    }
  }
}

}  // namespace
}  // namespace thimble
