// The flags that make weights sparse.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "transform/sparsify.h"

namespace thimble {

// As typed; what is not there was not.
struct SparsityFlags {
  std::optional<double> density;
  std::vector<std::string> weights;
  std::optional<std::string> method;
  std::optional<double> threshold;
  std::optional<double> target;

  void add_to(CLI::App& command);
  // UserError when a flag needs --density and stands alone, or is out of range.
  SparsitySpec spec() const;
};

}  // namespace thimble
