// Trains a net on records that this program makes itself, in as many bytes as it is allowed: which
// quarter of a picture is bright. Exits 0 when it was learnt in the budget.
#include <cstdio>
#include <thimble/thimble.hpp>

namespace {

// Record `number`: 8x8 pixels, dark but for one quarter, and which.
int draw(int64_t number, uint8_t* pixels) {
  const int quarter = static_cast<int>(number * 7919 % 4);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      const bool bright = (y / 4) * 2 + x / 4 == quarter;
      pixels[8 * y + x] = static_cast<uint8_t>((bright ? 180 : 0) + (number * 31 + 8 * y + x) % 60);
    }
  }
  return quarter;
}

// Straight into the step's own memory: pixels u8 [rows,8,8,1], label i32 [rows].
void fill(thimble_batch& batch) {
  const auto pixels = thimble::elements<uint8_t>(batch.fields[0]);
  const auto labels = thimble::elements<int32_t>(batch.fields[1]);
  const int64_t before =
      batch.test ? 1'000'000 + batch.first : batch.step * batch.batch + batch.first;
  if (batch.test && batch.first >= 256) batch.filled = 0;  // there are no more
  for (int64_t row = 0; row < batch.filled; ++row) {
    labels[row] = draw(before + row, &pixels[64 * row]);
  }
}

}  // namespace

int main() try {
  thimble::Recipe recipe("mlp");
  recipe.read("image = [8, 8, 1]\nclasses = 4\nbatch = 32\nsteps = 60\nmemory = '300KiB'");
  const thimble::Plan plan(recipe);
  std::printf("%lld bytes planned\n", static_cast<long long>(plan.bytes()));
  thimble::Run run(plan, {.fill = fill, .tests = true});
  run.train();
  const double accuracy = run.evaluate()["accuracy"];
  std::printf("accuracy %.3f after %lld steps\n", accuracy, static_cast<long long>(run.done()));
  return plan.bytes() <= 300 * 1024 && accuracy > 0.95 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "quarters: %s\n", error.what());
  return 2;
}
