// The CUDA backend is loaded when it is asked for; what can be wrong with it is one sentence.
#include "backend/cuda_library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "../file_support.h"
#include "backend/batchable_kernel.h"
#include "backend/tunable_kernel.h"

namespace thimble {
namespace {

class CudaLibrary : public testing::Test {
 protected:
  ~CudaLibrary() override { unsetenv("THIMBLE_CUDA_LIBRARY"); }

  static std::unique_ptr<Backend> load(const std::string& file) {
    setenv("THIMBLE_CUDA_LIBRARY", file.c_str(), 1);
    return make_backend("cuda", DeviceOptions());
  }

  // The refusal where `file` is loaded. It always offers the other devices.
  static std::string complaint(const std::string& file) {
    try {
      load(file);
    } catch (const DeviceError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("--device cpu"), std::string::npos) << text;
      EXPECT_NE(text.find("--device null"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      return text;
    }
    ADD_FAILURE() << file << " was loaded";
    return "";
  }
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(CudaLibrary, ErrorsKeepTheirTypesOnTheWayOut) {
  const std::unique_ptr<Backend> gpu = load(GPU_OF_THIS_BUILD);
  EXPECT_EQ(gpu->name(), "cuda");
  EXPECT_THROW(gpu->allocate(Bytes(1)), NoRoom);
  EXPECT_THROW(gpu->copy_out({}, nullptr), InternalError);
  EXPECT_THROW(gpu->kernel({}).run({}), DeviceError);
  try {
    gpu->copy_in(nullptr, {});
    ADD_FAILURE();
  } catch (const DeviceError&) {
    ADD_FAILURE() << "a mistake of the caller's was taken for a lost device";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "a mistake");
  }
}

TEST_F(CudaLibrary, OurErrorsPassThroughIt) {
  const std::unique_ptr<Backend> gpu = load(GPU_OF_THIS_BUILD);
  EXPECT_THROW(gpu->seconds_for([] { throw NoRoom("ours"); }), NoRoom);
}

TEST_F(CudaLibrary, KernelsKeepTheirKinds) {
  const std::unique_ptr<Backend> gpu = load(GPU_OF_THIS_BUILD);
  auto* const variants = dynamic_cast<TunableKernel*>(&gpu->kernel({}));
  ASSERT_NE(variants, nullptr);
  variants->use(2);
  EXPECT_EQ(variants->used(), 2);
  EXPECT_EQ(dynamic_cast<BatchableKernel*>(&gpu->kernel({})), nullptr);
}

TEST_F(CudaLibrary, OfAnotherBuildIsRefusedByItsName) {
  const std::string text = complaint(GPU_OF_ANOTHER_BUILD);
  expect_part(text, GPU_OF_ANOTHER_BUILD);
  expect_part(text, "another build, 0.0.9+000000000000");
  expect_part(text, "make build CUDA=ON");
}

TEST_F(CudaLibrary, WithoutCudnnSaysWhatToInstall) {
  const std::string text = complaint(GPU_WITHOUT_CUDNN);
  expect_part(text, "needs libcudnn_of_no_machine.so.9");
  expect_part(text, "install cuDNN 9, or put its folder into LD_LIBRARY_PATH");
}

TEST_F(CudaLibrary, WhatIsNotOursIsCalledSo) {
  expect_part(complaint(NO_GPU_AT_ALL), "is not Thimble's CUDA backend");
  const TemporaryFolder folder;
  const std::string text_file = folder / "libthimble_cuda.so";
  std::ofstream(text_file) << "a library of verse";
  expect_part(complaint(text_file), "cannot be loaded: " + text_file);
}

TEST_F(CudaLibrary, AFileThatIsNotThereIsNamed) {
  const std::string text = complaint("/no/such/folder/libthimble_cuda.so");
  expect_part(text, "THIMBLE_CUDA_LIBRARY names '/no/such/folder/libthimble_cuda.so'");
}

}  // namespace
}  // namespace thimble
