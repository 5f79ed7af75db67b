#include "graph/attrs.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace thimble {
namespace {

TEST(Attrs, AreSortedWhateverTheOrderTheyAreSetIn) {
  const Attrs a = {{"stride", int64_t{2}}, {"pad", int64_t{1}}};
  const Attrs b = {{"pad", int64_t{1}}, {"stride", int64_t{2}}};
  EXPECT_EQ(a, b);
  EXPECT_EQ(to_string(a), "{pad=1, stride=2}");
  EXPECT_EQ(to_string(Attrs{}), "");
}

TEST(Attrs, SettingAgainReplaces) {
  Attrs attrs = {{"pad", int64_t{1}}};
  attrs.set("pad", int64_t{3}).set("kind", "sum");
  EXPECT_EQ(attrs.integer("pad"), 3);
  EXPECT_EQ(attrs.text("kind", ""), "sum");
  EXPECT_EQ(attrs.entries().size(), 2u);
}

TEST(Attrs, LooksUpByKind) {
  const Attrs attrs = {{"n", int64_t{4}}, {"x", 0.5}, {"list", std::vector<int64_t>{1, 2}}};
  EXPECT_EQ(attrs.integer("n"), 4);
  EXPECT_EQ(attrs.real("n"), 4.0);
  EXPECT_EQ(attrs.real("x"), 0.5);
  EXPECT_EQ(attrs.integers("list"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(attrs.integer("absent", 7), 7);
  EXPECT_EQ(attrs.real("absent", 0.25), 0.25);
  EXPECT_EQ(attrs.text("absent", "f32"), "f32");
  EXPECT_FALSE(attrs.has("absent"));
  EXPECT_EQ(to_string(attrs), "{list=[1, 2], n=4, x=0.5}");
}

TEST(Attrs, AbsenceAndOtherKindsAreBugs) {
  const Attrs attrs = {{"n", int64_t{4}}, {"text", "t"}};
  EXPECT_THROW(attrs.integer("absent"), InternalError);
  EXPECT_THROW(attrs.real("absent"), InternalError);
  EXPECT_THROW(attrs.integers("n"), InternalError);
  EXPECT_THROW(attrs.integer("text"), InternalError);
  EXPECT_THROW(attrs.real("text"), InternalError);
  EXPECT_THROW(attrs.text("n", ""), InternalError);
}

}  // namespace
}  // namespace thimble
