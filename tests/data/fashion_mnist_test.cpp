#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"
#include "data/dataset.h"

namespace thimble {
namespace {

TEST(FashionMnist, IsReadFromItsFourFiles) {
  const TemporaryFolder folder;
  const auto head = [](std::initializer_list<int> bytes) {
    return std::string(bytes.begin(), bytes.end());
  };
  for (const auto& [name, count] : {std::pair("train", 3), std::pair("t10k", 2)}) {
    std::string images = head({0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28});
    images.append(static_cast<size_t>(count) * 784, '\7');
    std::string labels = head({0, 0, 8, 1, 0, 0, 0, count});
    for (int i = 0; i < count; ++i) labels.push_back(static_cast<char>(9 - i));
    spill(folder / (std::string(name) + "-images-idx3-ubyte"), images);
    spill(folder / (std::string(name) + "-labels-idx1-ubyte"), labels);
  }
  const auto set = open_dataset("fashion_mnist", {.folder = folder / ""});
  EXPECT_EQ(set->info().name, "fashion_mnist");
  EXPECT_EQ(set->info().train_count, 3);
  EXPECT_EQ(set->info().test_count, 2);
  EXPECT_EQ(set->info().field("pixels").shape, Shape({28, 28, 1}));
  EXPECT_EQ(set->info().field("label").limit, 10);
  EXPECT_THROW(open_dataset("fashion_mnist"), UserError);  // says where to get it
}

}  // namespace
}  // namespace thimble
