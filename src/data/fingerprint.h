// The identity of the data that a checkpoint was trained on, so that a run is not resumed with
// others.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/dataset.h"

namespace thimble {

// Name, sizes, counts, and the sha256 of the records of each split.
nlohmann::json fingerprint_of(const DatasetInfo& info);

// How the data differ, as "the number of training records was 50000 and is 40000 now"; empty: they
// do not. Only what both fingerprints have is compared.
std::string difference_of_data(const nlohmann::json& before, const nlohmann::json& now);

}  // namespace thimble
