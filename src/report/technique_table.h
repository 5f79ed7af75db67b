// The memory that each technique saves, alone and with the others, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/memory_terms.h"

namespace thimble {

// A step planned with one technique, or with several.
struct TechniqueRow {
  std::string name;
  MemoryTerms terms;
  Bytes arena;
  double flops = 0;  // of a whole step
  std::string_view tier;
  std::string refused;  // why there is no such step; empty: there is, and the rest counts
};

struct TechniqueReport {
  MemoryTerms baseline;            // on paper: see terms_on_paper
  std::vector<TechniqueRow> rows;  // the first is fp32 with everything kept, the last all combined
};

// Ratios are of the baseline's total to the arena; extra FLOPs are over those of the first row.
std::string technique_table(const TechniqueReport& report);
nlohmann::json technique_json(const TechniqueReport& report);

}  // namespace thimble
