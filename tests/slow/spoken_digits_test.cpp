// The recipe for spoken digits learns them from raw audio, in half a minute on a core. The recordings are not part
// of the repository: they are looked for in $THIMBLE_SPOKEN_DIGITS, or where `thimble data get
// spoken_digits` leaves them.
#include <cstdlib>
#include <filesystem>

#include "support/run_thimble.h"

namespace thimble {
namespace {

TEST(SpokenDigits, TheRecipeLearnsThem) {
  const std::string recipes = THIMBLE_RECIPES;
  const char* const named = std::getenv("THIMBLE_SPOKEN_DIGITS");
  const std::string data = named != nullptr ? named : recipes + "/../data/spoken_digits";
  if (!std::filesystem::exists(data)) {
    GTEST_SKIP() << "there are no recordings; get them with `thimble data get spoken_digits`, or "
                    "name their folder in $THIMBLE_SPOKEN_DIGITS";
  }
  const TemporaryFolder folder;
  const Outcome trained =
      thimble_says({"train", recipes + "/spoken-digits.toml", "--data-dir", data, "--frames",
                    "samples", "--out", folder / "run", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(trained.json()["test_accuracy"].get<double>(), 0.95);
}

}  // namespace
}  // namespace thimble
