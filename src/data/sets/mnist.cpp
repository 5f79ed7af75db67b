// MNIST, four IDX files.
#include "data/format/idx.h"

namespace thimble {

extern const DatasetDef data_mnist{
    "mnist", "70,000 handwritten digits, 28x28 grey, 10 classes (--data-dir)",
    [](const DataRequest& request) { return open_idx(request.folder, "mnist", 10); },
    "get its four files from https://storage.googleapis.com/cvdf-datasets/mnist/ (packed or not) "
    "and name the folder"};

}  // namespace thimble
