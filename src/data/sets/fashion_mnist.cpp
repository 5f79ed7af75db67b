// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), four IDX files.
#include "data/format/idx.h"

namespace thimble {

extern const DatasetDef data_fashion_mnist{
    "fashion_mnist", "70,000 articles of clothing, 28x28 grey, 10 classes (--data-dir)",
    [](const DataRequest& request) { return open_idx(request.folder, "fashion_mnist", 10); },
    "get its four files from https://github.com/zalandoresearch/fashion-mnist (packed or not) and "
    "name the folder"};

}  // namespace thimble
