#include "data/open.h"

#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

TEST(OpenDataset, OpensByName) {
  EXPECT_EQ(open_dataset("digits")->info().train_count, 1442);
  const auto generated = open_dataset("generated", "", {.image = {224, 224, 3}, .classes = 1000});
  EXPECT_EQ(generated->info().image, (Shape{224, 224, 3}));
  EXPECT_EQ(generated->info().classes, 1000);
}

TEST(OpenDataset, EveryListedNameIsKnown) {
  for (const DatasetKind& kind : dataset_kinds()) {
    EXPECT_FALSE(kind.summary.empty()) << kind.name;
    const std::string message = message_of<UserError>([&] { open_dataset(kind.name); });
    EXPECT_EQ(message.find("is not a data set"), std::string::npos) << message;
  }
}

TEST(OpenDataset, ListsTheKnownNames) {
  EXPECT_TRUE(throws_saying<UserError>(
      [] { open_dataset("cifar11"); },
      "'cifar11' is not a data set; known: digits, cifar10, mnist, idx, generated"));
}

TEST(OpenDataset, SaysWhereToGetAMissingSet) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_saying<UserError>([] { open_dataset("cifar10"); }, "needs a folder",
                                       "https://www.cs.toronto.edu/~kriz"));
  EXPECT_TRUE(throws_saying<UserError>([&] { open_dataset("cifar10", folder / "no"); },
                                       "is not at '" + (folder / "no"), "https://"));
  EXPECT_TRUE(throws_saying<UserError>([] { open_dataset("mnist"); }, "https://"));
  EXPECT_TRUE(throws_saying<UserError>([&] { open_dataset("mnist", folder.path()); },
                                       "has no train-images-idx3-ubyte"));
}

}  // namespace
}  // namespace thimble
