// Filters of raw audio that are learnt with the rest of a net. They start as those of a spectrum,
// which is what a net would have to find first: samples of the same sound differ with every phase.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "model/layers.h"

namespace thimble {

// The energy that a filter finds is this loud, beside which an energy of one is next to nothing.
inline constexpr double kLoud = 10;

// Cosines, then sines, of `filters` frequencies from none to half the rate of samples, under Hann's
// window: rows of `samples` numbers.
inline std::vector<double> fourier_filters(int64_t filters, int64_t samples) {
  std::vector<double> numbers;
  constexpr double kTurn = 2 * std::numbers::pi;
  for (const double phase : {0.0, kTurn / 4}) {
    for (int64_t filter = 0; filter < filters; ++filter) {
      const double turns = 0.5 * static_cast<double>(filter) / static_cast<double>(filters);
      for (int64_t i = 0; i < samples; ++i) {
        const auto at = static_cast<double>(i);
        const double window = 0.5 - 0.5 * std::cos(kTurn * at / static_cast<double>(samples));
        numbers.push_back(kLoud * window * std::cos(kTurn * turns * at - phase));
      }
    }
  }
  return numbers;
}

// Of frames [T,N,F], half the logarithm of one and the energy that each filter finds:
// [T,N,filters], of a frame at full loudness about between -2 and 5.
inline ValueId energies(Layers& net, ValueId frames, int64_t filters) {
  Builder& build = net.build();
  const Builder::Scope scope(build, "filters");
  const int64_t samples = build.shape(frames).back();
  const ValueId weight = net.weight("weight", {2 * filters, samples}, {});
  net.model().first_numbers[build.scoped("weight")] = fourier_filters(filters, samples);
  ValueId found = build.op("matmul", {frames, weight}, {{"transpose_b", int64_t{1}}});
  found = build.op("mul", {found, found});
  const auto half = [&](int64_t begin) {
    return build.op("slice", {found},
                    {{"axis", int64_t{2}}, {"begin", begin}, {"end", begin + filters}});
  };
  const ValueId energy = build.op("add", {half(0), half(filters)});
  const ValueId level = build.op("map", {energy}, {{"of", std::string("log1p")}});
  return build.op("map", {build.op("scale", {level}, {{"factor", 0.5}})},
                  {{"of", std::string("shift")}, {"a", -std::log(kLoud)}});
}

}  // namespace thimble
