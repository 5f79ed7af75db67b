// Data sets by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "data/generated.h"

namespace thimble {

struct DatasetKind {
  std::string_view name;
  std::string_view summary;
};
// digits, cifar10, mnist, idx, generated.
std::span<const DatasetKind> dataset_kinds();

// Opens a data set, checked in full. `folder` is where the files of cifar10, mnist and idx are;
// digits and generated need none. `spec` shapes `generated`, and its classes also apply to `idx`.
// Throws UserError on an unknown name (listing the known ones), a missing folder (saying where to
// get the files) or unsound files.
std::unique_ptr<Dataset> open_dataset(std::string_view name, const std::string& folder = "",
                                      const GeneratedSpec& spec = {});

}  // namespace thimble
