#include <gtest/gtest.h>

#include "../file_support.h"
#include "base/error.h"
#include "data/dataset.h"

namespace thimble {
namespace {

TEST(OpenDataset, OpensByName) {
  EXPECT_EQ(open_dataset("digits")->info().train_count, 1442);
  const std::vector<RecordField> wanted = {
      {.name = "pixels", .dtype = DType::u8, .shape = {224, 224, 3}},
      {.name = "label", .dtype = DType::i32, .limit = 1000}};
  const auto generated = open_dataset("generated", {.wanted = wanted});
  EXPECT_EQ(find_mismatch(wanted, generated->info().fields), std::nullopt);
}

TEST(OpenDataset, EveryListedNameIsKnown) {
  for (const DatasetDef* set : all_datasets()) {
    EXPECT_FALSE(set->summary.empty()) << set->name;
    const std::string message = message_of<UserError>([&] { open_dataset(set->name); });
    EXPECT_EQ(message.find("is not a data set"), std::string::npos) << message;
  }
}

TEST(OpenDataset, ListsTheKnownNames) {
  EXPECT_TRUE(throws_saying<UserError>(
      [] { open_dataset("cifar11"); },
      "'cifar11' is not a data set; known: adding, cifar10, copy, csv, digits, "));
}

TEST(OpenDataset, SaysWhereToGetAMissingSet) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_saying<UserError>([] { open_dataset("cifar10"); }, "needs a folder",
                                       "https://www.cs.toronto.edu/~kriz"));
  EXPECT_TRUE(throws_saying<UserError>([&] { open_dataset("cifar10", {.folder = folder / "no"}); },
                                       "is not at '" + (folder / "no"), "https://"));
  EXPECT_TRUE(throws_saying<UserError>([] { open_dataset("mnist"); }, "https://"));
  EXPECT_TRUE(throws_saying<UserError>([&] { open_dataset("mnist", {.folder = folder.path()}); },
                                       "has no train-images-idx3-ubyte"));
}

}  // namespace
}  // namespace thimble
