// Any set in MNIST's format, with as many classes as the model has.
#include "data/format/idx.h"

namespace thimble {
namespace {

std::unique_ptr<Dataset> open(const DataRequest& request) {
  const RecordField* const label = find_field(request.wanted, kLabel);
  return open_idx(request.folder, "idx", label != nullptr ? label->limit : 10);
}

}  // namespace

extern const DatasetDef data_idx{
    "idx", "any set in MNIST's format: Fashion-MNIST, KMNIST, EMNIST (--data-dir, --classes)", open,
    "name one with four IDX files called as MNIST's are"};

}  // namespace thimble
