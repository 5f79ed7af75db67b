#include "data/open.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "data/cifar10.h"
#include "data/digits.h"
#include "data/idx.h"

namespace thimble {
namespace {

constexpr std::array<DatasetKind, 5> kKinds = {{
    {"digits", "1,797 handwritten digits, 8x8 grey, 10 classes; built in, the default"},
    {"cifar10", "60,000 photographs, 32x32 colour, 10 classes (--data-dir)"},
    {"mnist", "70,000 handwritten digits, 28x28 grey, 10 classes (--data-dir)"},
    {"idx", "any set in MNIST's format: Fashion-MNIST, KMNIST, EMNIST (--data-dir, --classes)"},
    {"generated", "made on the spot, in the size and classes the model wants; needs no files"},
}};

void check_folder(std::string_view name, const std::string& folder, std::string_view where_to_get) {
  user_check(!folder.empty(), "the data set '{}' needs a folder with its files; {}", name,
             where_to_get);
  std::error_code ignored;
  user_check(std::filesystem::is_directory(folder, ignored),
             "the data set '{}' is not at '{}', which is no folder; {}", name, folder,
             where_to_get);
}

}  // namespace

std::span<const DatasetKind> dataset_kinds() { return kKinds; }

std::unique_ptr<Dataset> open_dataset(std::string_view name, const std::string& folder,
                                      const GeneratedSpec& spec) {
  if (name == "digits") return std::make_unique<Digits>();
  if (name == "generated") return std::make_unique<Generated>(spec);
  if (name == "cifar10") {
    check_folder(name, folder,
                 "get the binary version from "
                 "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpack it and name the "
                 "folder");
    return std::make_unique<Cifar10>(folder);
  }
  if (name == "mnist") {
    check_folder(name, folder,
                 "get its four files from https://storage.googleapis.com/cvdf-datasets/mnist/ "
                 "(packed or not) and name the folder");
    return std::make_unique<Idx>(folder, "mnist");
  }
  if (name == "idx") {
    check_folder(name, folder, "name one with four IDX files called as MNIST's are");
    return std::make_unique<Idx>(folder, "idx", spec.classes);
  }
  std::vector<std::string_view> names;
  for (const DatasetKind& kind : kKinds) names.push_back(kind.name);
  user_error("'{}' is not a data set; known: {}", name, fmt::join(names, ", "));
}

}  // namespace thimble
